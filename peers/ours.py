"""Our kernels on torch's tensors."""

import torch

import arguments

DTYPES = {
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f32": torch.float32,
    "f64": torch.float64,
    "u8": torch.uint8,
    # Integers are scratch memory here, whose sign nobody asks for.
    "s8": torch.int8,
    "u16": torch.int16,
    "s16": torch.int16,
    "u32": torch.int32,
    "s32": torch.int32,
    "u64": torch.int64,
    "s64": torch.int64,
}


class LoadedKernel:
    """A kernel that the driver has compiled."""

    def __init__(self, kernel, driver):
        self.kernel, self.driver = kernel, driver
        module = driver.load(kernel.ptx)
        self.functions = [driver.function(module, launch.entry, launch.shared) for launch in kernel.launches]
        each = [driver.resources(function) for function in self.functions]
        self.resources = {what: max(used[what] for used in each) for what in each[0]}

    def memory(self):
        """What one run writes: the results and the scratch buffers, poisoned where nobody promises zeros."""
        kernel, memory = self.kernel, {}
        for role, shape in kernel.problem.shapes(kernel.layout).items():
            if role in kernel.roles and role in ("o", "lse"):
                dtype = torch.float32 if role == "lse" else DTYPES[kernel.problem.dtype]
                memory[kernel.roles[role]] = torch.full(shape, float("nan"), dtype=dtype, device="cuda")
        for name, buffer in kernel.scratch().items():
            memory[name] = torch.zeros(buffer.shape, dtype=DTYPES[buffer.type], device="cuda")
            if isinstance(buffer.init, list):
                memory[name].copy_(torch.tensor(buffer.init).view(buffer.shape))
            if buffer.init == "poison" and memory[name].is_floating_point():
                memory[name].fill_(float("nan"))
        return memory

    def bind(self, inputs, memory):
        """The kernel on one set of inputs, which are laid out (batch, sequence, heads, dim)."""
        kernel = self.kernel
        if kernel.layout == "bhsd":
            inputs = [tensor.transpose(-3, -2) for tensor in inputs]
        tensors = dict(memory)
        for role, tensor in zip("qkv", inputs):
            tensors[kernel.roles[role]] = tensor.contiguous()
        return BoundKernel(self, tensors)


class BoundKernel:
    """A loaded kernel with all its arguments."""

    def __init__(self, loaded, tensors):
        self.loaded, self.tensors = loaded, tensors
        addresses = {name: tensor.data_ptr() for name, tensor in tensors.items()}
        encode = loaded.driver.encode_map
        self.packed = [arguments.pack(launch, loaded.kernel, addresses, encode) for launch in loaded.kernel.launches]

    def run(self):
        """All launches of the recipe, on torch's current stream."""
        stream = torch.cuda.current_stream().cuda_stream
        for launch, function, packed in zip(self.loaded.kernel.launches, self.loaded.functions, self.packed):
            for _ in range(launch.repeat):
                self.loaded.driver.launch(function, launch, packed, stream)

    def results(self):
        """The output and, where the kernel writes it, the log-sum-exp."""
        roles = self.loaded.kernel.roles
        return {role: self.tensors[roles[role]] for role in ("o", "lse") if role in roles}

    def poison(self):
        """Fills the results with NaN, so that what is not written is noticed."""
        for tensor in self.results().values():
            tensor.fill_(float("nan"))
