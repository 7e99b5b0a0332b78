#!/usr/bin/env bash
# Faults planted into a copy of the kernels; a check has to detect each of them.
#   planted_faults.sh plant SOURCE_DIR COPY   copies the kernels and what they include to COPY, with every fault behind
#                                             a run-time switch: fault N is present when NDT_PLANTED_FAULT=N
#   planted_faults.sh check BIN_DIR COPY [N]  runs the programs that are built from COPY once without a fault, which
#                                             has to pass, and once with each fault, or each N-th one, which has to
#                                             fail; names the check
set -uo pipefail
mode=$1 copy=$3 every=${4:-1}
count=0 failed=0 tried=0

# fault PROGRAMS CASES NAME FILE SED-EXPRESSION: `@` in the expression is 1 while the fault is present, else 0. Each of
# the programs has to detect it; PROGRAM=CASES has cases of its own.
fault() {
    local cases=$2 name=$3 file=$copy/$4 program
    count=$((count + 1))
    if [ "$mode" = plant ]; then
        sed -i "${5//@/NDT_PLANTED($count)}" "$file"
    elif ! grep -q "NDT_PLANTED($count)" "$file"; then
        echo "FAIL $name: the fault could not be planted"
        failed=1
    elif [ $((count % every)) = 0 ]; then
        tried=$((tried + 1))
        for program in $1; do
            case $program in
            *=*) detect "${program%%=*}" "${program#*=}" "$name" ;;
            *) detect "$program" "$cases" "$name" ;;
            esac
        done
    fi
}

detect() { # PROGRAM CASES NAME
    local out
    if out=$(run "$1" "$2" "$count"); then
        echo "FAIL $3: no check detects it ($1)"
        failed=1
    else
        echo "ok   $3: $(grep -m1 -E '^FAIL|emulation:|CRASH' <<<"$out" | cut -c1-200 || echo 'the program ended')"
    fi
}

run() { # PROGRAM CASES FAULT
    local options
    case $1 in
    kernels) options=(--backend cuda-emulated --largest 257 --oracle 257 --case "$2") ;;
    kernels-*) options=(--backend cuda-emulated --oracle 129 --largest 1000 --pipeline "${1#kernels-}" --case "$2") ;;
    preprocess) options=(--quick) ;;
    search | scores) options=(--backend cuda-emulated --case "$2") ;;
    solver-small) # clusters of two blocks, which need several rounds
        options=(--backend cuda-emulated --exact --quick --pipeline resident-cluster --case "$2")
        local -x NDT_EMULATION_PROCESSORS=2 ;;
    solver-*) options=(--backend cuda-emulated --exact --quick --pipeline "resident-${1#solver-}" --case "$2") ;;
    esac
    # A fault may hang; without one a slow machine takes its time.
    NDT_PLANTED_FAULT=$3 NDT_EMULATION_SEED=1 timeout "$([ "$3" = 0 ] && echo 1200 || echo 60)" "$bin/check_${1%%-*}_planted" "${options[@]}" 2>&1
}

untouched() { # PROGRAM CASES
    local out
    if out=$(run "$1" "$2" 0); then
        echo "ok   untouched: $(tail -1 <<<"$out")"
    else
        echo "FAIL: the untouched kernels do not pass: $(head -3 <<<"$out")"
        exit 1
    fi
}

if [ "$mode" = plant ]; then
    rm -rf "$copy"
    mkdir -p "$copy/core"
    cp -r "$2/gpu" "$copy/gpu"
    cp -r "$2/src/core/include" "$copy/core/include"
else
    bin=$2
    untouched kernels sizes/257
    untouched solver-block rows/129/421
    untouched solver-block prior/
    untouched kernels-fused times/
    untouched preprocess ""
    untouched search dense/
    untouched scores parts/
fi

# Removes the barrier before a comment.
barrier() { # PROGRAM CASES NAME FILE COMMENT
    fault "$1" "$2" "no barrier $3" "$4" "s/\(__syncthreads()\|cluster_barrier()\|byte_barrier_wait(.*)\); .* $5 .*/if (!@) &/"
}

math=core/include/ndt/point_math.h
fused=gpu/kernels_fused.cu
fault kernels poses/steep "a wrong sign in one second derivative (d1, as in old PCL)" $math \
    's/(t->h\[6\], -cy \* cz, cy \* sz, -sy/(t->h[6], -cy * cz, cy * sz, @ ? sy : -sy/'
fault kernels sizes/33/direct7 "a wrong sign in one term of a pair" $math \
    's/w \* B\[at\] - w \* u\[i\]/w * B[at] - (@ ? -w : w) * u[i]/'
fault kernels sizes/257/direct7 "the last point of a block is left out" $fused \
    's/if (i < job.count/if (!(@ \&\& threadIdx.x == 127) \&\& i < job.count/'
fault kernels sizes/257/direct7 "the last, part-filled block is not launched" $fused \
    's/i = point_index();/i = @ \&\& blockIdx.x == 2 ? job.count : point_index();/'
fault kernels sizes/257/direct7 "a point beyond the last is evaluated" $fused 's/i < job.count)/i < job.count + @)/'
fault kernels sizes/257/direct7 "staged: one point too many in the reduction" gpu/kernels_staged.cu \
    's/i < job.count \&\& k/i < job.count + @ \&\& k/'
barrier kernels sizes/257/direct7 "after the tables" gpu/point_device.cuh "tables are complete"
barrier kernels sizes/257/direct7 "before the rows of a block are added" gpu/reduce.cuh "all rows are there"
barrier kernels sizes/257/direct7 "before the last block is known" $fused "place is known"
barrier kernels poses/ "before a block is counted as done" $fused "every thread.s part of the row is written"
fault kernels sizes/257 "the ticket is not set back" $fused 's/\*job.ticket = 0;/if (!@) &/'
fault kernels sizes/257/direct7 "a shuffle goes to the wrong lane" gpu/reduce.cuh 's/give, HALF)/give, HALF ^ @)/'

newton=core/include/ndt/newton_steps.h
solve=gpu/solve_device.cuh
resident=gpu/kernels_resident.cu
fault solver-block rows/33/421 "a step that is too long is cut more" $newton \
    's/return a \* fmax(NDT_CUT_LEAST/return (@ ? 0.5 : 1) * a * fmax(NDT_CUT_LEAST/'
fault solver-block batch/1 "weak directions are not found" $newton \
    's/if (n->stop != NDT_STOP_OFF_MAP)$/if (!@ \&\& n->stop != NDT_STOP_OFF_MAP)/'
fault solver-block variant/gnss "GNSS is left out" $newton \
    's/if (\(!rules->has_gnss || !heading(n, n->query_pose, h)\))/if (@ || \1)/'
fault solver-block batch/1 "the look around is left out" $solve \
    's/: NDT_GPU_COVERAGE;/: @ ? NDT_GPU_FINISHED : NDT_GPU_COVERAGE;/'
fault "solver-block solver-cluster solver-graph" batch/1 "a sector too many" $solve 's/__popc(data.seen)/__popc(data.seen | @)/'
fault solver-block batch/1 "the scan is not turned" $solve \
    's/(double)from\[0\], y = (double)from\[column\]/(double)from[@ ? column : 0], y = (double)from[@ ? 0 : column]/'
fault "solver-block solver-cluster solver-graph" batch/1 "a lane of the eigenvalues does nothing" $solve \
    's/if (turns \&\& lane < EIGEN6_LANES)/if (turns \&\& lane < EIGEN6_LANES - @)/'
fault solver-block batch/3 "rows of the first alignment are used for all" $resident \
    's/(size_t)number \* (size_t)batch->row_capacity/(@ ? number != 0 : &)/'
fault solver-block deadline/past "the deadline is ignored" $solve \
    's/if (data.last \&\& newton->wants_eval)/if (!@ \&\& data.last \&\& newton->wants_eval)/'
fault solver-block rows/700 "later rows of a large scan are left out" $resident \
    's/first += groups_of_team())/first += (1 + @) * groups_of_team())/'
fault solver-small rows/1500 "later rows of a block of a cluster are left out" $resident \
    's/stride = team.size \* groups;/stride = (1 + @) * team.size * groups;/'
fault solver-cluster rows/700 "two blocks of a cluster take the same rows" $resident \
    's/first = team.rank \* groups;/first = (@ ? 0 : team.rank) * groups;/'
barrier solver-cluster rows/700 "before the rows are added" $resident "all rows of the item are there"
barrier solver-cluster rows/700 "before orders are read" $resident "the orders are given"
barrier solver-cluster rows/700 "before blocks write to one another" $resident "every block runs, and its barriers count"
fault solver-cluster rows/700 "the orders do not reach the last block" $resident \
    's/i < team.size \* NDT_GPU_ORDER_WORDS/i < (team.size - @) * NDT_GPU_ORDER_WORDS/'
fault solver-cluster rows/700 "the coverage of the blocks is left out" $resident \
    's/share->pass.seen, &team.exchange->rows_come/@ ? 0 : share->pass.seen, \&team.exchange->rows_come/'
fault solver-cluster rows/700 "the leader expects a row less" $resident \
    's/team.share->item.blocks \* (uint32_t)NDT_GPU_ROW/(team.share->item.blocks - @) * (uint32_t)NDT_GPU_ROW/'
fault solver-block batch/1 "the result is not written back" $resident \
    's/copy_words(share->batch.results + number, /if (!@) &/'
fault solver-block batch/3 "the results of a batch are not written back" $resident \
    's/copy_words(share->batch.items + number, /if (!@) &/'
pass=gpu/pass_device.cuh
fault solver-chain batch/1 "the ticket of an alignment is not set back" $pass 's/item->ticket = 0;/if (!@) &/'
barrier solver-chain rows/700 "before a block is counted" $pass "every thread.s part of the row is written"
fault solver-chain batch/1 "the next pose is not prepared" $solve 's/if (threadIdx.x < 3 \&\& moves)/if (!@ \&\& threadIdx.x < 3 \&\& moves)/'

# Prior, first level and information, in every shape.
shapes="solver-block solver-cluster solver-graph solver-chain"
everywhere="$shapes kernels-fused=times/ kernels-staged=times/"
inform=gpu/inform_point.cuh
fault "$shapes" prior/robust "the prior is left out" $newton 's/    add_prior(n, &eval);/    if (!@) add_prior(n, \&eval);/'
fault "$shapes" prior/gnss "the prior pushes away from the guess" $newton \
    's/gradient\[i\] -= pull\[i\]/gradient[i] -= (@ ? -1 : 1) * pull[i]/'
fault "$shapes" prior/gnss "the guess is the mean of the prior" $newton \
    's/ - n->prior_offset\[i\]/ - (@ ? 0 : n->prior_offset[i])/'
fault "$shapes" prior/autoware "the curvature of the prior is left out" $newton \
    's/eval->hessian\[i\] -= n->prior\[i\];/if (!@) &/'
fault "$shapes" prior/robust "the prior counts as observed" $newton \
    's/n->eval.hessian\[i\] + n->prior\[i\]/n->eval.hessian[i] + (@ ? 0 : n->prior[i])/'
fault "$shapes" prior/robust "the first level is ignored" $solve \
    's/levels\[orders->level\], sizeof/levels[@ \&\& orders->first ? batch->rules.level[0] : orders->level], sizeof/'
fault "$everywhere" prior/robust "the information with the wrong sign" gpu/eval_point.cuh \
    's/-job.level.d1d2 \* e/(@ ? 1 : -1) * job.level.d1d2 * e/'
fault "$everywhere" prior/robust "the information about pose and twist without times" $math \
    's/\(information\[1\]\[at\] += \)a /\1(@ ? 1 : a) /'
fault "$everywhere" prior/robust "a time counts once in the information about the twist" $math \
    's/\(information\[2\]\[at\] += a \* \)a /\1(@ ? 1 : a) /'
fault "$everywhere" prior/robust "the gradient without times" $math 's/time_gradient\[i\] += a /time_gradient[i] += (@ ? 1 : a) /'
fault "$everywhere" prior/robust "times that are not finite count" $inform 's/isfinite(times_s\[i\])/(@ || &)/'
fault "$shapes" prior/robust "the times of the first scan for all" $resident 's/item->scan_at \/ 3/(@ ? 0 : &)/'
fault "$shapes" prior/robust "the information on the first level" $resident \
    's/.*the answer is there.*/& if (@ \&\& threadIdx.x == 0) share.orders.level = batch->rules.level[0]; __syncthreads();/'
fault "$shapes" prior/robust "the information at another pose" $resident \
    's/.*the answer is there.*/& if (@ \&\& threadIdx.x < 6) share.orders.t_m[threadIdx.x % 3] += 0.1f; __syncthreads();/'
fault "$shapes" prior/robust "the information of the last alignment only" $resident \
    's/(size_t)number \* NDT_GPU_PLANES/(size_t)(@ ? 0 : number) * NDT_GPU_PLANES/'
fault "$everywhere" prior/robust "the information without the last block" $inform \
    's/if (i < view->count)/if (i < view->count \&\& !(@ \&\& row == view->blocks - 1))/'
fault "$shapes" prior/robust "a block of the information is not launched" $resident \
    's/if (row >= item->blocks)$/if (row + (@ \&\& row > 0) >= item->blocks)/'
barrier "$everywhere" prior/robust "before the next plane" $inform "the plane before is done"
barrier solver-block prior/robust "before a plane is summed" $inform "the plane is taken"

kernels=gpu/kernels_preprocess.cu
math=core/include/ndt/preprocess_math.h
fault preprocess "" "the last point is left out" $kernels 's/if (i >= work->count)/if (i + @ >= work->count)/'
fault preprocess "" "a cell begins with any of its points" $kernels 's/if (mine < seen)/if (mine < (@ ? 0 : seen))/'
fault preprocess "" "slots of rounds before are taken for full" $kernels \
    's/if (seen >> 32 != work->round)/if (@ ? seen == 0 : seen >> 32 != work->round)/'
fault preprocess "" "the sums of the scan before stay" $kernels \
    's/work->sums\[4 \* (size_t)i + (size_t)k\] = 0;/if (!@) &/'
fault preprocess "" "the numbers of points of the scan before stay" $kernels 's/work->sizes\[i\] = 0;/if (!@) &/'
barrier preprocess "" "before the stretches are added up" $kernels "all stretches are there"
barrier preprocess "" "before the warps are added up" $kernels "all warps have counted"
barrier preprocess "" "before the lanes are added up" $kernels "all lanes are there"
barrier preprocess "" "before a block is counted as done" $kernels "every thread has written its part"
fault preprocess "" "the ticket is not set back" $kernels 's/state->ticket = 0;/if (!@) &/'
fault preprocess "" "the sample begins one later" $kernels \
    's/ndt_sample_pick(work->plan.seed, j,/ndt_sample_pick(work->plan.seed, j + @,/'
fault preprocess "" "again moves what was moved" $kernels \
    's/float p_m\[3\] = {work->sampled\[0\]\[j\]/float p_m[3] = {@ ? work->scan[j] : work->sampled[0][j]/'
fault preprocess "" "a cell's number is cut towards zero" $math \
    's/cell = cut - ((float)cut > at)/cell = cut - (!@ \&\& (float)cut > at)/'
fault preprocess "" "ranges are decided in float only" $math 's/return \(exact >= plan->near_m2.*\);/return @ || (\1);/'
fault preprocess "" "times stay relative to the stamp" $math \
    's/(NDT_ROUNDING + reference_us)/(NDT_ROUNDING + !@ * reference_us)/'
fault preprocess "" "times are not rounded" $math \
    's/return (time_s \* 1e6f + NDT_ROUNDING)/if (@) return time_s * 1e6f - reference_us; &/'
fault preprocess "" "times outside the sweep are used" $math 's/is_in_sweep =$/is_in_sweep = @ ||/'
fault preprocess "" "the sweep has no begin" $math 's/since_s >= plan->begin_s/(@ || since_s >= plan->begin_s)/'
fault preprocess "" "the sweep has no end" $math 's/since_s <= plan->end_s/(@ || since_s <= plan->end_s)/'
fault preprocess "" "a point moves with the begin of its segment only" $math \
    's/plan->boundaries\[segment + 1\]/plan->boundaries[segment + !@]/'

# The dense score of a search.
search=gpu/kernels_search.cu
fault search dense/quick "the last hypothesis is left out" $search 's/(hypothesis >= search/(hypothesis + @ >= search/'
fault search dense/thorough "the later hypotheses of a team are left out" $search 's/i += NDT_GPU_GROUPS)/i += (1 + @) * NDT_GPU_GROUPS)/'
fault search dense/quick "the last point is left out" $search 's/i < count; i++) {/i + @ < count; i++) {/'
fault search dense/quick "the mask covers three of four places" $search 's/\* 0x01010101u/* (@ ? 0x010101u : 0x01010101u)/'
fault search dense/quick "the highest band does not count" $search 's/0x7f7f7f7fu) | bytes)/0x7f7f7f7fu) | (@ ? 0 : bytes))/'
fault search dense/full "sums of more than 127 points" $search 's/\(8 \* (i % 4)\)) & 255/\1) \& (@ ? 127 : 255)/'
fault search dense/near "a point to the left is taken for one to the right" $search 's/at + (int16_t)(/at + (@ ? -1 : 1) * (int16_t)(/'
fault search dense/near "cells are not shifted within a word" $search 's/shift = from % 4 \* 8/shift = @ ? 0 : from % 4 * 8/'
fault search dense/quick "a missing tile is taken for the first" $search \
    's/(int32_t)first : -1/(int32_t)first : (@ \&\& search->tile_count > 0) - 1/'
fault search dense/no_tiles "a missing tile is full" $search 's/(size_t)cell\] : 0;/(size_t)cell] : 0u - @;/'
fault search dense/quick "layers are mixed up" $search 's/if (a.layer != b.layer)/if (!@ \&\& a.layer != b.layer)/'
fault search dense/quick "rows of tiles below the origin are rounded up" $search \
    's/out.y >> search->edge_bits; /@ ? out.y \/ (1 << search->edge_bits) : &/'
fault search dense/far "the last row of the surroundings is left out" $search 's/row < part.height;/row < part.height - @;/'
fault search dense/far "the last words of a row are left out" $search 's/word < part.words;/word < part.words - @;/'
fault search dense/far_2m "the last tile is left out" $search 's/i < count; i += (int32_t)blockDim/i < count - @; i += (int32_t)blockDim/'
fault search dense/quick "allowed places of the neighbour" $search 's/(4 \* column) & 15/(4 * (column ^ @)) \& 15/'
fault search dense/quick "the halves of other blocks are joined" $search 's/half, 1)/half, 1 + @)/'
barrier search dense/quick "before the tiles are read" $search "the tiles are known"
barrier search dense/quick "before the cells are read" $search "the cells are there"

# Scores of one scan at many poses.
scores=gpu/kernels_scores.cu
math=core/include/ndt/score_math.h
fault scores parts/ "the last point of a part is left out" $scores 's/i < last; i += NDT/i + @ < last; i += NDT/'
fault scores parts/ "all parts begin with the first point" $scores 's/= blockIdx.x % parts \*/= (@ ? 0 : blockIdx.x % parts) */'
fault scores parts/ "the pose of the neighbour" $scores 's/poses\[blockIdx.x \/ parts\]/poses[blockIdx.x \/ parts ^ @]/'
fault scores parts/radius "a mean is taken for its neighbour" $scores 's/<< (k + i)/<< (k + (i ^ @))/'
fault scores parts/direct7 "one voxel too many" $scores 's/(1u << list_length(ref, at.neighbours))/(1u << (list_length(ref, at.neighbours) + @))/'
fault scores parts/radius "direct neighbours for a radius" $scores 's/hits != 0 \&\& at.neighbours/!@ \&\& &/'
fault scores parts/radius "the voxel after the next" $scores 's/voxel = next;/if (!@ || k > 0) &/'
fault scores parts/direct7 "the last value of a point for the best" $scores 's/best = value > best/best = @ || value > best/'
fault scores parts/direct7 "a single pair is no match" $scores 's/sums->matched++;/sums->matched += pairs > @;/'
fault scores parts/direct7 "lanes are left out" $scores 's/lanes \/= 2)/lanes \/= 2 + 2 * @)/'
fault scores parts/direct7 "a warp is left out" $scores 's/i < NDT_GPU_WARPS; i++)/i < NDT_GPU_WARPS - @; i++)/'
fault scores parts/direct7 "points and pairs overlap" $scores 's/mine->matched << 16/mine->matched << (16 - 6 * @)/'
fault scores parts/direct7 "another pose for its voxels" $scores 's/job.scores->sums\[blockIdx.x\]/job.scores->sums[blockIdx.x ^ @]/'
fault scores parts/radius "a rotation with products that are rounded" $math \
    's/fmaf(x\[1\], R\[1\], x\[0\] \* R\[0\])/(@ ? x[1] * R[1] + x[0] * R[0] : &)/'
fault scores parts/radius "a form with products that are rounded" $math \
    's/fmaf(q\[1\], u\[1\], q\[0\] \* u\[0\])/(@ ? q[1] * u[1] + q[0] * u[0] : &)/'
fault scores parts/radius "another factor of the polynomial" $math 's/0.0555071327f/(@ ? 0.0555071364f : 0.0555071327f)/'
fault scores parts/radius "values are not rounded to units" $math 's/ndt_score_bits(value + 1.0f)/ndt_score_bits(value + (@ ? 0.99999994f : 1.0f))/'
fault scores parts/radius "a cell is cut towards zero" $math 's/steps = floorf(\(.*\));/steps = @ ? truncf(\1) : floorf(\1);/'
barrier scores parts/radius "before the pose is read" $scores "the pose is there"
barrier scores parts/radius "before the warps are added" $scores "all warps are done"

[ "$mode" = plant ] || echo "$count faults planted, $tried of them tried"
exit "$failed"
