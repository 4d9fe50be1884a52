// SPDX-License-Identifier: MIT
// Checkpoints with a description of their page in the metadata. Programs with the same model and
// `tg` read them too.
import { readMetadata, type SaveOptions } from 'tensorgrad';

/** What a page adds to a checkpoint. `page` is the title of the page. */
export interface Saved { page: string; settings: { [name: string]: string }; state: object }

const key = 'page';

/** Returns the options of `trainer.save()` for a checkpoint with a description. */
export const described = (saved: Saved): SaveOptions => ({ metadata: [[key, JSON.stringify(saved)]] });

/**
 * Returns the description in a checkpoint of a page, or nothing for one of another program. Throws
 * if the file is no checkpoint, is truncated, or is from another page.
 */
export async function descriptionOf(bytes: Uint8Array, file: string,
                                    page: string): Promise<Saved | undefined> {
  const metadata = await readMetadata(bytes, { name: file }).catch(({ message }: Error) => {
    const why = message.startsWith(`${file}: `) ? message.slice(file.length + 2) : message;
    throw new Error(`${file} is not a checkpoint of tensorgrad, or it is truncated or damaged: ${why}.`);
  });
  if (!metadata['tensorgrad.version'])
    throw new Error(`${file} has weights only. This page opens checkpoints of training runs.`);
  if (metadata[key] === undefined) return undefined;
  const saved = JSON.parse(metadata[key]) as Saved;
  if (saved.page !== page)
    throw new Error(`${file} is a checkpoint of the page ${saved.page}. Open it there.`);
  return saved;
}
