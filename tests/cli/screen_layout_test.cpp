// SPDX-License-Identifier: MIT
// The layout of the full-screen view of a run, at every size.
#include "ui/screen_layout.h"

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "cli/plain_rows.h"
#include "ui/canvas.h"

namespace tensorgrad::cli {
namespace {

using ::testing::HasSubstr;

RunFigures figures_of_a_run() {
  RunFigures figures;
  RunSnapshot shot;
  shot.whole = true;
  RunHead head;
  head.tool = "tg train";
  head.folder = "runs/shapes";
  head.device = "cpu: 2 threads";
  head.model = "mlp 196-64-32-3: 14,819 parameters";
  head.data = "shapes: 600 images for training, 120 for testing, 3 classes";
  head.unit = "images";
  head.held_out = "test";
  head.units_per_step = 60;
  head.steps = 1000;
  head.epochs = 100;
  head.launches = 17;
  head.peak_bytes = 1'234'567;
  head.profiles = true;
  shot.head = std::make_shared<const RunHead>(head);
  for (int step = 1; step <= 40; ++step) {
    shot.lines.push_back({"step", R"({"kind":"step","step":)" + std::to_string(step * 10) +
                                      R"(,"loss":)" + std::to_string(2.0 / step) + "}"});
  }
  for (int step = 100; step <= 400; step += 100) {
    shot.lines.push_back({"epoch", R"({"kind":"epoch","step":)" + std::to_string(step) +
                                       R"(,"test_loss":)" + std::to_string(60.0 / step) +
                                       R"(,"test_accuracy":0.925})"});
  }
  shot.now.step = shot.now.saved = 400;
  shot.now.epoch = 40;
  shot.now.loss = 0.05;
  shot.now.lr = 0.001;
  shot.now.rate = 48'200;
  shot.now.left = 72;
  shot.now.seconds = 45;
  shot.now.activity = "testing";
  shot.predictions = std::make_shared<const std::vector<RunPrediction>>(
      std::vector<RunPrediction>{{"ring", "ring", 0.98}, {"cross", "bar", 0.61}});
  figures.take(shot);
  figures.printed = {"epoch 39/100  loss 0.0513", "epoch 40/100  loss 0.0500"};
  return figures;
}

TEST(ScreenLayout, fits_into_the_smallest_terminal) {
  Canvas canvas(80, 20, false);
  draw_run(canvas, figures_of_a_run(), {});
  EXPECT_EQ(plain_rows(canvas),
            R"(tg train  runs/shapes                                                    testing
=============================............................................   40 %
device  cpu: 2 threads

Loss  - training  o test                Step             400 of 1,000
  2 + |                                 Epoch            40 of 100
    | |.                                Training loss    0.05
1.5 +  |                                Test loss        0.15 at step 400
    |  |                                Test accuracy    92.50 %
  1 +  |                                Images/s         48.2k (803 steps/s)
    |  |                                Time left        1:12
0.5 +  '|    o..                        Trained          0:45
    |    '-.    ''--.o...               Learning rate    0.001
    |       '''|-------|.''''o'''----o  Saved            step 400
     0              200            400  Memory           1.2 MB, by the plan
                                        Launches         17 a step
Predictions   Output
1 of 2 test images are right
 98 %  ring                61 %  cross, is bar
 p  pause   s  save   q  stop   t  time launches   l  logarithmic   Tab  next
)");
}

TEST(ScreenLayout, shows_the_numbers_and_keys_at_every_size) {
  const RunFigures figures = figures_of_a_run();
  for (int columns = 80; columns <= 250; columns += 17) {
    for (int rows = 20; rows <= 80; rows += 7) {
      Canvas canvas(columns, rows, columns % 2 == 0);
      draw_run(canvas, figures, {});
      const std::string text = plain_rows(canvas);
      for (const char* const part :
           {"tg train  runs/shapes", "testing\n", "400 of 1,000\n", "40 of 100\n", "0.05\n",
            "0.15 at step 400\n", "92.50 %\n", "48.2k (803 steps/s)\n", "1:12\n", "0:45\n",
            "0.001\n", "step 400\n", "1.2 MB, by the plan\n", "17 a step\n",
            "1 of 2 test images are right", "cross, is bar", " p  pause"})
        EXPECT_THAT(text, HasSubstr(part)) << columns << "x" << rows << "\n" << text;
    }
  }
}

TEST(ScreenLayout, says_that_a_terminal_is_too_small) {
  for (const auto& [columns, rows] :
       {std::pair(79, 20), std::pair(80, 19), std::pair(1, 1), std::pair(0, 0)}) {
    Canvas canvas(columns, rows, true);
    draw_run(canvas, figures_of_a_run(), {});
    EXPECT_EQ(plain_rows(canvas).starts_with("The terminal is "), rows >= 19);
  }
}

TEST(ScreenLayout, drops_lines_of_an_earlier_version) {
  RunFigures figures = figures_of_a_run();
  RunSnapshot further = figures.shot;
  further.whole = false;
  further.lines = {{"step", R"({"kind":"step","step":410,"loss":null})"},
                   {"sample", R"({"kind":"sample","step":410,"prompt":"a","text":"b"})"}};
  figures.take(further);
  EXPECT_EQ(figures.training.x.size(), 41U);
  EXPECT_TRUE(std::isnan(figures.training.y.back()));
  ASSERT_EQ(figures.samples.size(), 1U);
  EXPECT_EQ(figures.samples[0].text, "b");
  further.whole = true;
  further.lines.resize(1);
  figures.take(further);
  EXPECT_EQ(figures.training.x.size(), 1U);
  EXPECT_TRUE(figures.samples.empty());
}

}  // namespace
}  // namespace tensorgrad::cli
