# SPDX-License-Identifier: MIT
# Prints the scalars of the event files in a folder, as TensorBoard reads them: tag, step, value and
# seconds since 1970, separated by tabs.
import sys

from tensorboard.backend.event_processing import plugin_event_accumulator
from tensorboard.util import tensor_util

reader = plugin_event_accumulator.EventAccumulator(sys.argv[1], tensor_size_guidance={"scalars": 0})
reader.Reload()
for tag in reader.Tags()["tensors"]:
    assert reader.SummaryMetadata(tag).plugin_data.plugin_name == "scalars", tag
    for event in reader.Tensors(tag):
        value = tensor_util.make_ndarray(event.tensor_proto).item()
        print(tag, event.step, repr(value), repr(event.wall_time), sep="\t")
print("end")
