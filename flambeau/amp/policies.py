"""Which public functions autocast changes on the CPU, and how.

`LOWER`: floating operands go to the region's dtype. `FLOAT32`: they go to float32. `WIDEST`: they
go to the widest dtype among them. All other functions run on what they are given. float64
operands stay float64 everywhere. Functions that only call functions of these lists need no entry.
`ALONE`: functions that keep their operands although they call functions of the lists.
"""

LOWER = frozenset(
    """
    addbmm addmm baddbmm bmm chain_matmul conv1d conv2d conv3d conv_tbc conv_transpose1d
    conv_transpose2d conv_transpose3d einsum inner linear matmul mm multi_dot prelu rnn_relu_cell
    rnn_tanh_cell scaled_dot_product_attention tensordot vecdot __matmul__ __rmatmul__
    """.split()
)

FLOAT32 = frozenset(
    """
    adaptive_avg_pool3d adaptive_max_pool3d adaptive_max_pool3d_with_indices avg_pool3d
    binary_cross_entropy binary_cross_entropy_with_logits cdist cosine_embedding_loss
    cross_entropy ctc_loss fractional_max_pool2d fractional_max_pool2d_with_indices
    fractional_max_pool3d fractional_max_pool3d_with_indices grid_sample hinge_embedding_loss
    huber_loss kl_div l1_loss local_response_norm margin_ranking_loss max_pool3d
    max_pool3d_with_indices max_unpool1d max_unpool2d max_unpool3d mse_loss multi_margin_loss
    multilabel_margin_loss nanquantile nll_loss poisson_nll_loss polar prod quantile smooth_l1_loss
    soft_margin_loss stft trace triplet_margin_loss view_as_complex

    cholesky cholesky_ex cholesky_inverse cholesky_solve cond eig eigh eigvals eigvalsh geqrf
    householder_product inv inv_ex inverse lstsq lu lu_solve matrix_rank orgqr ormqr pinv pinverse
    qr solve svd svdvals tensorinv tensorsolve triangular_solve

    fft fft2 fftn hfft hfft2 hfftn ifft ifft2 ifftn ihfft ihfft2 ihfftn irfft irfft2 irfftn rfft
    rfft2 rfftn
    """.split()
)

WIDEST = frozenset("cat concat concatenate index_copy stack".split())

ALONE = frozenset("addmv bilinear dot mv vdot".split())

# Padding by repeating values computes in float32 for these numbers of padded dimensions.
_WIDE_PADDING = {"reflect": (1, 2), "replicate": (1, 2, 3)}


def policy(name: str, args: tuple, kwargs: dict) -> frozenset | None:
    """The list that a call of function `name` falls under."""
    for names in (LOWER, FLOAT32, WIDEST, ALONE):
        if name in names:
            return names
    if name == "pad":
        mode = kwargs.get("mode", args[2] if len(args) > 2 else "constant")
        amounts = kwargs.get("pad", args[1] if len(args) > 1 else ())
        return FLOAT32 if len(amounts) // 2 in _WIDE_PADDING.get(mode, ()) else None
    return None
