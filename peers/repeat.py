"""The same launch many times: a kernel that races gives other bits now and then."""

import torch

STREAMS = 8


def bit_equal(loaded, inputs, launches):
    """How many launches, on one stream and on eight, gave the bits of the first."""
    first = loaded.bind(inputs, loaded.memory())
    first.run()
    torch.cuda.synchronize()
    return [count(loaded, inputs, launches, streams, bits(first)) for streams in (1, STREAMS)]


def count(loaded, inputs, launches, streams, expected):
    """Launches in turns on so many streams, each with results of its own; counts those with the expected bits."""
    lanes = [torch.cuda.Stream() for _ in range(streams)]
    bound = [loaded.bind(inputs, loaded.memory()) for _ in lanes]
    equal = [torch.zeros((), dtype=torch.int64, device="cuda") for _ in lanes]
    torch.cuda.synchronize()
    for index in range(launches):
        lane = index % streams
        with torch.cuda.stream(lanes[lane]):
            bound[lane].poison()
            bound[lane].run()
            equal[lane] += same(bits(bound[lane]), expected)
    torch.cuda.synchronize()
    return sum(counter.item() for counter in equal)


def bits(bound):
    """The results as integers: NaN equals itself, and 0.0 is not -0.0."""
    as_integer = {2: torch.int16, 4: torch.int32}
    return [tensor.view(as_integer[tensor.element_size()]) for tensor in bound.results().values()]


def same(found, expected):
    return torch.stack([(left == right).all() for left, right in zip(found, expected)]).all()
