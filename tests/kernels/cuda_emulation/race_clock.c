#include "race_clock.h"

#include <stdlib.h>
#include <string.h>

enum { CHUNK_BYTES = 1 << 20, RECENT = 4 };

/* Memory of a launch: chunks that are used again by the next. */
struct chunk {
    struct chunk *next;
    size_t bytes;
};

static struct chunk *chunks, *current;
static size_t used_bytes;

static struct race_lane *lanes;
static uint32_t *joined; /* all zero between joins */
static uint32_t lane_count, lanes_kept, first_joined, end_joined;

/* Joining the same clocks again, as the lanes of a block do one after the other, gives the same result. */
static struct {
    const struct race_clock *a, *b, *both;
} recent;

void *race_take(size_t bytes)
{
    bytes = (bytes + 15) & ~(size_t)15;
    while (!current || used_bytes + bytes > current->bytes) {
        struct chunk *next = current ? current->next : chunks;
        if (!next || bytes > next->bytes) {
            const size_t wanted = bytes > CHUNK_BYTES ? bytes : CHUNK_BYTES;
            struct chunk *made = malloc(sizeof(*made) + 16 + wanted);
            if (!made)
                abort();
            *made = (struct chunk){next, wanted};
            if (current)
                current->next = made;
            else
                chunks = made;
            next = made;
        }
        current = next;
        used_bytes = 0;
    }
    char *base = (char *)current + ((sizeof(*current) + 15) & ~(size_t)15);
    used_bytes += bytes;
    return base + used_bytes - bytes;
}

void race_clock_start(uint32_t count)
{
    if (count > lanes_kept) {
        free(lanes);
        free(joined);
        lanes = calloc(count, sizeof(*lanes));
        joined = calloc(count, sizeof(*joined));
        if (!lanes || !joined)
            abort();
        lanes_kept = count;
    }
    current = NULL;
    used_bytes = 0;
    lane_count = count;
    recent.a = recent.b = recent.both = NULL;
    for (uint32_t i = 0; i < count; i++)
        lanes[i] = (struct race_lane){.epoch = 1};
    first_joined = UINT32_MAX;
    end_joined = 0;
}

struct race_lane *race_lane(uint32_t lane)
{
    return &lanes[lane];
}

static uint32_t clock_of(const struct race_clock *clock, uint32_t lane)
{
    return clock && lane >= clock->first && lane < clock->end ? clock->at[lane - clock->first] : 0;
}

int race_knows(uint32_t lane, uint32_t other, uint32_t epoch, int is_shared)
{
    return lane == other || clock_of(lanes[lane].seen, other) >= epoch ||
           (is_shared && clock_of(lanes[lane].local, other) >= epoch);
}

/* ---- joins: any number of calls of join and join_entry, then finish ---- */

static void join_entry(uint32_t lane, uint32_t epoch)
{
    if (joined[lane] < epoch)
        joined[lane] = epoch;
    first_joined = first_joined < lane ? first_joined : lane;
    end_joined = end_joined > lane + 1 ? end_joined : lane + 1;
}

static void join(const struct race_clock *clock)
{
    if (!clock)
        return;
    uint32_t *to = joined + clock->first;
    for (uint32_t i = 0; i < clock->end - clock->first; i++)
        to[i] = to[i] > clock->at[i] ? to[i] : clock->at[i];
    first_joined = first_joined < clock->first ? first_joined : clock->first;
    end_joined = end_joined > clock->end ? end_joined : clock->end;
}

static const struct race_clock *finish(void)
{
    if (end_joined <= first_joined)
        return NULL;
    const uint32_t count = end_joined - first_joined;
    struct race_clock *out = race_take(sizeof(*out) + count * sizeof(out->at[0]));
    out->first = first_joined;
    out->end = end_joined;
    memcpy(out->at, joined + first_joined, count * sizeof(out->at[0]));
    memset(joined + first_joined, 0, count * sizeof(out->at[0]));
    first_joined = UINT32_MAX;
    end_joined = 0;
    return out;
}

static const struct race_clock *join_two(const struct race_clock *a, const struct race_clock *b)
{
    if (!a || !b || a == b)
        return a ? a : b;
    if (recent.a != a || recent.b != b) {
        join(a);
        join(b);
        recent.a = a;
        recent.b = b;
        recent.both = finish();
    }
    return recent.both;
}

/* ---- the edges ---- */

/* Joins one of the three clocks of all lanes that meet; `place` is its offset in struct race_lane. */
static const struct race_clock *join_all(const uint32_t *which, unsigned count, size_t place)
{
    const struct race_clock *last[RECENT] = {NULL};
    unsigned different = 0;
    for (unsigned i = 0; i < count; i++) {
        const struct race_clock *clock;
        memcpy(&clock, (const char *)&lanes[which[i]] + place, sizeof(clock));
        if (!clock || clock == last[0] || clock == last[1] || clock == last[2] || clock == last[3])
            continue;
        last[different++ % RECENT] = clock;
        if (different == 2)
            join(last[0]);
        if (different >= 2)
            join(clock);
    }
    return different <= 1 ? last[0] : finish();
}

/* barrier.sync, barrier.cluster, bar.warp.sync: all lanes that meet synchronise with one another. */
void race_meet(const uint32_t *which, unsigned count)
{
    const struct race_clock *fenced = join_all(which, count, offsetof(struct race_lane, fenced));
    const struct race_clock *pending = join_all(which, count, offsetof(struct race_lane, pending));
    const struct race_clock *local = join_all(which, count, offsetof(struct race_lane, local));
    join(join_all(which, count, offsetof(struct race_lane, seen)));
    for (unsigned i = 0; i < count; i++)
        join_entry(which[i], lanes[which[i]].epoch);
    const struct race_clock *seen = finish();
    for (unsigned i = 0; i < count; i++)
        lanes[which[i]] = (struct race_lane){lanes[which[i]].epoch + 1, seen, fenced, pending, local};
}

void race_fence(uint32_t lane)
{
    struct race_lane *me = &lanes[lane];
    me->seen = join_two(me->seen, me->pending);
    me->pending = NULL;
    join(me->seen);
    join_entry(lane, me->epoch++);
    me->fenced = finish();
}

const struct race_clock *race_release(uint32_t lane, const struct race_clock *before)
{
    return join_two(lanes[lane].fenced, before);
}

void race_observe(uint32_t lane, const struct race_clock *clock)
{
    if (clock)
        lanes[lane].pending = join_two(lanes[lane].pending, clock);
}

const struct race_clock *race_arrive(uint32_t lane, const struct race_clock *before)
{
    join(before);
    join(lanes[lane].seen);
    join(lanes[lane].local);
    join_entry(lane, lanes[lane].epoch++);
    return finish();
}

void race_acquire(uint32_t lane, const struct race_clock *clock)
{
    lanes[lane].local = join_two(lanes[lane].local, clock);
}

const struct race_clock *race_complete(uint32_t lane, const struct race_clock *clock)
{
    join(clock);
    join_entry(lane, lanes[lane].epoch++);
    return finish();
}
