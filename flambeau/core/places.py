"""Which module a name of `torch` lives in, for names that are loaded when they are first used.

`import flambeau` must stay short: what a training script does not need waits here.
"""

from __future__ import annotations

SUBMODULES = frozenset("""
    _C _dynamo _logging accelerator amp ao autograd backends compile compiler cpu cuda distributed
    distributions export fft func functional futures fx hub jit library linalg masked mps mtia
    multiprocessing nested nn onnx optim overrides package profiler quantization random
    serialization signal sparse special storage testing types utils version xpu
    """.split())

_HOMES: dict[str, str] = {
    "flambeau.serialization": "load save",
    "flambeau.amp": "autocast GradScaler",
    "flambeau.amp.settings": """
        autocast_decrement_nesting autocast_increment_nesting clear_autocast_cache
        get_autocast_cpu_dtype get_autocast_dtype get_autocast_gpu_dtype is_autocast_cache_enabled
        is_autocast_cpu_enabled is_autocast_enabled set_autocast_cache_enabled
        set_autocast_cpu_dtype set_autocast_cpu_enabled set_autocast_dtype set_autocast_enabled
        set_autocast_gpu_dtype""",
    "flambeau.func": "vmap",
    "flambeau.futures": "Future",
    "flambeau.devices.streams": "Stream Event",
    "flambeau.nn.recurrence": """
        lstm gru rnn_tanh rnn_relu lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell""",
    "flambeau.autograd.anomaly": """
        is_anomaly_enabled is_anomaly_check_nan_enabled set_anomaly_enabled""",
    "flambeau.tensor.overrides": "DisableTorchFunctionSubclass",
    "flambeau.sparse": "spmm dsmm smm hspmm",
    "flambeau.jit": "fork wait ScriptModule ScriptFunction CompilationUnit",
    "flambeau.tensor.numerics": """
        get_num_threads set_num_threads get_num_interop_threads set_num_interop_threads
        get_float32_matmul_precision set_float32_matmul_precision use_deterministic_algorithms
        are_deterministic_algorithms_enabled is_deterministic_algorithms_warn_only_enabled
        set_deterministic_debug_mode get_deterministic_debug_mode set_flush_denormal
        set_warn_always is_warn_always_enabled init_num_threads""",
    "flambeau.tensor.checks": """
        _check _check_with _check_value _check_index _check_type _check_not_implemented
        _check_is_size _check_tensor_all _check_tensor_all_with""",
    "flambeau.tensor.symbolic": """
        SymInt SymFloat SymBool sym_int sym_float sym_not sym_max sym_min sym_sum sym_ite
        sym_sqrt cond while_loop""",
    "flambeau.tensor.foreign": "asarray frombuffer from_dlpack from_file to_dlpack",
    "flambeau.tensor.storages": """
        UntypedStorage TypedStorage FloatStorage DoubleStorage HalfStorage BFloat16Storage
        LongStorage IntStorage ShortStorage CharStorage ByteStorage BoolStorage
        ComplexFloatStorage ComplexDoubleStorage""",
    "flambeau.tensor.typed": """
        FloatTensor DoubleTensor HalfTensor BFloat16Tensor LongTensor IntTensor ShortTensor
        CharTensor ByteTensor BoolTensor""",
    "flambeau.tensor.about": """
        typename get_device get_device_module get_file_path compiled_with_cxx11_abi is_distributed
        is_vulkan_available has_lapack has_mkl has_openmp has_spectral torch_version __config__
        OutOfMemoryError AcceleratorError thread_safe_generator range constant_pad_nd""",
    "flambeau.functional.positional": """
        batch_norm dropout_ alpha_dropout_ feature_dropout feature_dropout_ feature_alpha_dropout_
        embedding embedding_bag embedding_renorm_ convolution native_layer_norm native_group_norm
        native_batch_norm native_dropout grid_sampler grid_sampler_2d grid_sampler_3d
        affine_grid_generator""",
}
PLACES = {name: home for home, names in _HOMES.items() for name in names.split()}
