// SPDX-License-Identifier: MIT
// The page "Tic-tac-toe".
import assert from 'node:assert/strict';
import {after, before, test} from 'node:test';

import {openSite, phone} from './pages.mjs';

let site;
before(async () => { site = await openSite(); });
after(() => site?.close());

const cells = ['top', 'middle', 'bottom'].flatMap(
  (row) => ['left', 'center', 'right'].map((column) => `${row} ${column}`));

test('learns from games against itself', async () => {
  const page = await site.open('tictactoe', 'steps=150');
  await page.state('paused');
  await page.waitForFunction(() => Number(document.querySelector('#all').textContent) > 0);
  const before = await page.value('lost') / await page.value('all');
  await page.press('Start');
  await page.state('done');
  await page.waitForFunction(() => Number(document.querySelector('#lost').textContent) < 60);
  const lost = await page.value('lost') / await page.value('all');
  assert.ok(before > 0.2 && lost < 0.2, `${before} ${lost}`);
  assert.ok(await page.value('loss') < 0.3, `${await page.value('loss')}`);
  await page.getByLabel('Values of moves').selectOption('on');
  await page.waitForFunction(() => /\d/.test(document.querySelector('#board').textContent));
  await page.shot('tictactoe');
  await page.check();
  await page.close();
});

test('plays against the user until the end', async () => {
  const page = await site.open('tictactoe', 'first=network', {...phone, colorScheme: 'dark'});
  await page.state('paused');
  await page.press('New game');
  for (let move = 0; move < 5; ++move) {
    await page.waitForFunction(() => document.querySelector('#result').textContent !== 'The network moves.');
    if (!/^Your move: O/.test(await page.value('result'))) break;
    const marks = await page.locator('#board button').allTextContents();
    assert.equal(marks.filter((each) => each === 'X').length, move + 1);
    const free = cells[marks.findIndex((each) => each !== 'X' && each !== 'O')];
    await page.getByRole('button', {name: `${free}: empty`}).tap();
  }
  assert.match(await page.value('result'), /^(You win|The network wins|A draw)\.$/);
  await page.shot('tictactoe_phone');
  await page.press('New game');
  await page.waitForFunction(() => document.querySelector('#result').textContent === 'Your move: O.');
  await page.getByLabel('First move').selectOption('user');
  await page.waitForFunction(() => document.querySelector('#result').textContent === 'Your move: X.');
  assert.equal((await page.locator('#board').textContent()).trim(), '');
  await page.check();
  await page.close();
});
