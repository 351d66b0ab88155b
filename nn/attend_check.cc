// What is said about a call that does not fit together.
#include "nn/attend_op.h"

namespace regard::nn {
namespace {

void CheckTensor(const char* name, const at::Tensor& t, const at::Tensor& q) {
  TORCH_CHECK_VALUE(t.dim() == 4, name, " has shape ", t.sym_sizes(),
                    "; expected 4 dimensions: batch, heads, positions, width");
  TORCH_CHECK_VALUE(at::isFloatingType(t.scalar_type()) && t.scalar_type() == q.scalar_type(), name, " is ",
                    t.scalar_type(), " and q is ", q.scalar_type(),
                    "; expected one floating type for q, k, v");
  TORCH_CHECK_VALUE(t.device() == q.device(), name, " is on ", t.device(), " and q on ", q.device(),
                    "; expected one device");
}

void CheckSame(const char* what, const char* a_name, const at::Tensor& a, const char* b_name,
               const at::Tensor& b, std::int64_t dimension) {
  TORCH_CHECK_VALUE(a.sym_size(dimension) == b.sym_size(dimension), b_name, " has shape ", b.sym_sizes(),
                    " and ", a_name, " has ", a.sym_sizes(), "; expected the same number of ", what);
}

void CheckGiven(const char* name, const at::Tensor& tensor, bool needed, const char* scores) {
  TORCH_CHECK_VALUE(tensor.defined() == needed, name,
                    tensor.defined() ? " is given with another score than " : " is not given with score ",
                    scores, "; expected both or neither");
}

}  // namespace

void CheckAttendCall(const AttendCall& call) {
  const AttendOptions& o = call.options;
  CheckTensor("q", call.q, call.q);
  CheckTensor("k", call.k, call.q);
  CheckTensor("v", call.v, call.q);
  CheckSame("batches", "q", call.q, "k", call.k, 0);
  CheckSame("batches", "q", call.q, "v", call.v, 0);
  CheckSame("heads", "k", call.k, "v", call.v, 1);
  CheckSame("keys", "k", call.k, "v", call.v, 2);
  CheckSame("dimensions", "q", call.q, "k", call.k, 3);
  const auto H = call.q.sym_size(1), G = call.k.sym_size(1);
  TORCH_CHECK_VALUE(G == 0 ? H == 0 : H % G == 0, "q has ", H, " heads and k has ", G,
                    "; expected a multiple of the key heads");
  const bool additive = o.score == ScoreKind::kAdditive;
  const bool kernel = o.score == ScoreKind::kGaussian || CompactKernelOf(o.score);
  CheckGiven("additive_weight", o.additive_weight, additive, "additive");
  CheckGiven("precision", o.precision, kernel, "gaussian, boxcar, triangular, epanechnikov or tricube");
  TORCH_CHECK_VALUE(!o.scale || !(additive || kernel), "scale is ", o.scale.value_or(0),
                    "; expected none: it goes with a scaled_dot, dot or cosine score");
  TORCH_CHECK_VALUE(o.query_segments.defined() == o.key_segments.defined(),
                    "only one of query_segments and key_segments is given; expected both or neither");
  TORCH_CHECK_VALUE(o.dropout >= 0 && o.dropout < 1, "dropout is ", o.dropout, "; expected 0 <= dropout < 1");
  TORCH_CHECK_VALUE(!o.softcap || *o.softcap > 0, "softcap is ", o.softcap.value_or(0),
                    "; expected more than 0");
  TORCH_CHECK_VALUE(!o.blocks.defined() || (o.block_queries > 0 && o.block_keys > 0), "blocks of ",
                    o.block_queries, " queries and ", o.block_keys, " keys; expected sizes above 0");
}

}  // namespace regard::nn
