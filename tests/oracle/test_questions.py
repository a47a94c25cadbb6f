"""What a script asks about devices and settings has PyTorch's answer on a machine without a GPU."""

import importlib

import pytest

import flambeau

torch = pytest.importorskip("torch")
if torch.cuda.is_available() or torch.backends.mps.is_available():
    pytest.skip("the answers are those of a machine without a GPU", allow_module_level=True)

SAME = """
    torch.cuda.is_available() torch.cuda.device_count() torch.cuda.is_initialized()
    torch.cuda.memory_allocated() torch.cuda.max_memory_allocated() torch.cuda.memory_reserved()
    torch.cuda.get_arch_list() torch.cuda.is_bf16_supported() torch.cuda.get_rng_state_all()
    torch.cuda.manual_seed(0) torch.cuda.manual_seed_all(0) torch.cuda.empty_cache()
    torch.cuda.current_device() torch.cuda.get_device_name(0) torch.cuda.get_device_capability()
    torch.cuda.get_device_properties(0) torch.cuda.synchronize() torch.cuda.init()
    torch.cuda.FloatTensor(2) torch.cuda.Stream() torch.cuda.Event() torch.cuda.set_device(-1)
    torch.cuda.default_generators torch.ones(2).cuda() torch.ones(2).to("cuda")
    torch.zeros(2,device="cuda") torch.zeros(2).is_cuda torch.zeros(2).get_device()
    torch.nn.Linear(2,2).cuda() torch.xpu.is_available() torch.xpu.device_count()
    torch.xpu.current_device() torch.mps.device_count() torch.mps.empty_cache()
    torch.mps.synchronize() torch.backends.mps.is_available() torch.backends.mps.is_built()
    torch.accelerator.is_available() torch.accelerator.current_accelerator()
    torch.accelerator.device_count() torch.accelerator.synchronize() torch.cpu.is_available()
    torch.cpu.device_count() torch.cpu.current_device() torch.cpu.synchronize()
    torch.backends.cudnn.enabled torch.backends.cudnn.benchmark torch.backends.cudnn.deterministic
    torch.backends.cudnn.allow_tf32 torch.backends.cudnn.is_available()
    torch.backends.cudnn.version() torch.backends.cuda.is_built()
    torch.backends.cuda.matmul.allow_tf32 torch.backends.cuda.flash_sdp_enabled()
    torch.backends.cuda.math_sdp_enabled() torch.backends.cpu.get_cpu_capability()
    torch.get_float32_matmul_precision() torch.are_deterministic_algorithms_enabled()
    torch.get_deterministic_debug_mode() torch.is_warn_always_enabled() torch.version.cuda
    torch.get_default_dtype() torch.set_num_threads(0) torch.set_num_threads("a")
    torch.set_deterministic_debug_mode("a")
    torch.distributed.is_initialized() torch.jit.is_scripting() torch.jit.is_tracing()
    torch.compiler.is_compiling() torch.typename(torch.ones(1)) torch.typename(3)
    torch.ones(1).type() torch.get_device(torch.ones(1)) torch.sym_max(1,2.0) torch.sym_int(2.5)
    torch._check(False) torch._check_value(False) torch._check_index(False) torch._check_type(False)
    torch._check(True) torch._check_is_size(-1) torch._check_tensor_all(torch.ones(2)>0)
    torch._check_tensor_all(torch.ones(2)) torch.range(1,3) torch.vander(torch.arange(3))
    torch.jit.script(3) torch.jit.trace(torch.exp) torch.hub.get_dir().endswith("hub")
    torch.utils._pytree.tree_map(str,{"a":[1,(2,None)]})
    torch.utils._pytree.tree_leaves({"a":[1,(2,None)]})
    torch.ones(2,3).dim_order() torch.ones(1).untyped_storage().nbytes()
    torch.ones(1).share_memory_()
    torch.eye(3).fill_diagonal_(2) torch.zeros(7,3).fill_diagonal_(5,wrap=True)
    torch.ones(1,3).squeeze_().shape torch.ones(3).unsqueeze_(0).shape torch.ones(2,3).t_().shape
    torch.ones(2,3).transpose_(0,1).stride() torch.ones(2,2,dtype=torch.cfloat).adjoint()
    torch.sparse.mm(torch.eye(3).to_sparse(),torch.ones(3,2))
    torch.eye(3).to_sparse()@torch.ones(3,2)
    torch.cond(True,torch.neg,torch.abs,(torch.ones(1),))
""".split()


def answer(package, expression):
    for name in ("utils._pytree", "utils.data", "hub", "distributed"):
        importlib.import_module(f"{package.__name__}.{name}")
    try:
        value = eval(expression, {"torch": package})
    except Exception as error:
        return type(error).__mro__
    return value.tolist() if isinstance(value, package.Tensor) else value


@pytest.mark.parametrize("expression", SAME)
@pytest.mark.filterwarnings("ignore")
def test_same_answer(expression):
    ours, theirs = answer(flambeau, expression), answer(torch, expression)
    if isinstance(theirs, tuple) and theirs and theirs[-1] is object:
        builtin = next(c for c in theirs if c.__module__ == "builtins")
        assert builtin in ours, ours
    else:
        assert str(ours) == str(theirs)
