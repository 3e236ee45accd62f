/* Cohorts; see cohort.h. */
#include "cohort.h"

#include <string.h>

#include "check.h"
#include "memory.h"
#include "minmax.h"

struct cohort {
    LIST_ENTRY(cohort) link; /* in its place */
    struct calls waiting;    /* in order; the first leads, while nobody holds */
    struct config *config;   /* that of whoever came first */
    struct evlock *holder;   /* by a lease that may be passed on, once it is told; or NULL */
    int64_t since;           /* when the server granted that */
    int64_t rests_until;     /* until then others can see that the lock is free: no attempt is made */
    uint32_t passes;         /* of it */
    uint32_t count;          /* of those who wait */
    bool fenced;
    bool fail_when_away;
    uint16_t key_len;
    char key[];
};

static struct cohorts *cohort_family_of(const struct evlock *lock) {
    return &evl_locks_of(lock)->cohorts;
}

static int64_t cohort_now_of(const struct evlock *lock) {
    return evl_turn_now(evl_handle_turn(lock));
}

/* --- The table ---------------------------------------------------------------------------------------------------- */

static struct cohort_list *cohorts_place(const struct cohorts *cohorts, struct bytes key) {
    return &cohorts->places[evl_hash_bytes(key) & (cohorts->size - 1)];
}

static struct bytes cohort_key(const struct cohort *cohort) {
    return (struct bytes){cohort->key, cohort->key_len};
}

/* Without memory it stays as it is, if it is there. */
static bool cohorts_grow(struct cohorts *cohorts) {
    struct cohorts grown = *cohorts;
    struct cohort *cohort;

    if (cohorts->count < cohorts->size)
        return true;
    grown.size = cohorts->size ? 2 * cohorts->size : 16;
    grown.places = evl_alloc(grown.size * sizeof(*grown.places));
    if (!grown.places)
        return cohorts->size > 0;
    for (size_t i = 0; i < cohorts->size; i++)
        while ((cohort = LIST_FIRST(&cohorts->places[i]))) {
            LIST_REMOVE(cohort, link);
            LIST_INSERT_HEAD(cohorts_place(&grown, cohort_key(cohort)), cohort, link);
        }
    evl_free(cohorts->places);
    *cohorts = grown;
    return true;
}

static struct cohort *cohort_make(struct cohorts *cohorts, const struct call *call) {
    const struct evlock *lock = call->lock;
    struct cohort *cohort = cohorts_grow(cohorts) ? evl_alloc(sizeof(*cohort) + lock->key_len) : NULL;

    if (!cohort)
        return NULL;
    TAILQ_INIT(&cohort->waiting);
    cohort->config = lock->config;
    cohort->config->references++;
    cohort->fenced = call->acquire.fenced;
    cohort->fail_when_away = call->acquire.fail_when_away;
    cohort->key_len = lock->key_len;
    memcpy(cohort->key, lock->key, lock->key_len);
    LIST_INSERT_HEAD(cohorts_place(cohorts, cohort_key(cohort)), cohort, link);
    cohorts->count++;
    return cohort;
}

/* A cohort goes when nobody is left of it. */
static void cohort_end_empty(struct cohorts *cohorts, struct cohort *cohort) {
    if (cohort->holder || !TAILQ_EMPTY(&cohort->waiting))
        return;
    LIST_REMOVE(cohort, link);
    cohorts->count--;
    evl_config_unref(cohort->config);
    evl_free(cohort);
}

static bool cohort_fits(const struct cohort *cohort, const struct call *call) {
    return evl_same_bytes(cohort_key(cohort), evl_handle_key(call->lock)) && cohort->fenced == call->acquire.fenced &&
           cohort->fail_when_away == call->acquire.fail_when_away &&
           evl_config_same_lease(cohort->config, call->lock->config);
}

static struct cohort *cohort_for(const struct call *call) {
    const struct cohorts *cohorts = cohort_family_of(call->lock);
    struct cohort *cohort;

    if (cohorts->size)
        LIST_FOREACH (cohort, cohorts_place(cohorts, evl_handle_key(call->lock)), link)
            if (cohort_fits(cohort, call))
                return cohort;
    return NULL;
}

/* The cohort by which a handle holds, or NULL. */
static struct cohort *cohort_held_by(const struct evlock *lock) {
    const struct cohorts *cohorts = cohort_family_of(lock);
    struct cohort *cohort;

    if (evl_cohort_is_for(lock) && cohorts->size)
        LIST_FOREACH (cohort, cohorts_place(cohorts, evl_handle_key(lock)), link)
            if (cohort->holder == lock)
                return cohort;
    return NULL;
}

/* --- Who waits ---------------------------------------------------------------------------------------------------- */

/* Nothing is passed on where all end. */
static bool cohort_ends(const struct evlock *lock) {
    return !evl_locks_of(lock)->open || evl_turn_forked(evl_handle_turn(lock));
}

struct call *evl_cohort_leader(const struct evlock *lock, const struct cohort *cohort) {
    return cohort->holder || cohort_ends(lock) ? NULL : TAILQ_FIRST(&cohort->waiting);
}

bool evl_cohort_join(struct call *call) {
    struct cohort *cohort;

    if (call->acquire.token || call->acquire.retries != EVLOCK_UNLIMITED)
        return true;
    cohort = cohort_for(call);
    if (!cohort)
        cohort = cohort_make(cohort_family_of(call->lock), call);
    if (!cohort)
        return false;
    call->acquire.cohort = cohort;
    TAILQ_INSERT_TAIL(&cohort->waiting, call, acquire.beside);
    cohort->count++;
    return true;
}

bool evl_cohort_enter_again(struct call *call) {
    struct cohort *cohort = cohort_held_by(call->lock);

    if (!cohort)
        return false;
    cohort->holder = NULL;
    call->acquire.cohort = cohort;
    call->acquire.contended = evl_kind_has_queue(call->lock->config->kind);
    TAILQ_INSERT_HEAD(&cohort->waiting, call, acquire.beside);
    cohort->count++;
    return true;
}

uint16_t evl_cohort_passes_ahead(const struct call *call) {
    const struct cohort *cohort = call->acquire.cohort;

    return cohort ? (uint16_t)evl_min(cohort->count - 1, cohort->config->max_passes) : 0;
}

static void cohort_wake(const struct cohort *cohort, struct call *leader) {
    int64_t at = evl_max(cohort_now_of(leader->lock), cohort->rests_until);

    evl_call_wake(leader, evl_min(at, leader->acquire.wait_until));
}

void evl_cohort_leave(struct call *call) {
    struct cohort *cohort = call->acquire.cohort;
    bool led = evl_cohort_leads(call);
    struct call *leader;

    TAILQ_REMOVE(&cohort->waiting, call, acquire.beside);
    cohort->count--;
    call->acquire.cohort = NULL;
    leader = evl_cohort_leader(call->lock, cohort);
    if (led && leader && !leader->lock->tenure) { /* it has not inherited the attempt */
        leader->acquire.contended |= call->acquire.contended;
        leader->acquire.nonsense |= call->acquire.nonsense;
        cohort_wake(cohort, leader);
    }
    cohort_end_empty(cohort_family_of(call->lock), cohort);
}

void evl_cohort_hold(struct call *call) {
    struct cohort *cohort = call->acquire.cohort;

    assert(!cohort->holder);
    cohort->holder = call->lock;
    if (call->acquire.passed)
        return;
    cohort->since = evl_lease_since(evl_tenure_lease(call->lock->tenure));
    cohort->passes = 0;
}

/* Who comes next may be another process: it is the queue that keeps the turns, or a pause in which others can see that
 * the lock is free. */
void evl_cohort_end_hold(struct evlock *lock, bool released) {
    struct cohort *cohort = cohort_held_by(lock);
    struct call *leader;

    if (!cohort)
        return;
    cohort->holder = NULL;
    leader = evl_cohort_leader(lock, cohort);
    if (leader) {
        leader->acquire.contended = evl_kind_has_queue(lock->config->kind);
        if (released && !evl_kind_has_queue(lock->config->kind))
            cohort->rests_until = cohort_now_of(lock) + leader->acquire.retry_delay;
        cohort_wake(cohort, leader);
    }
    cohort_end_empty(cohort_family_of(lock), cohort);
}

/* Where nobody is told of a break, an heir would believe in what is not there any more. */
void evl_cohorts_doubt(const struct evlock *lock) {
    const struct cohorts *cohorts = cohort_family_of(lock);
    struct bytes key = evl_handle_key(lock);
    struct cohort *cohort;

    if (!cohorts->size)
        return;
    LIST_FOREACH (cohort, cohorts_place(cohorts, key), link)
        if (cohort->holder && evl_same_bytes(cohort_key(cohort), key))
            evl_lease_tie(evl_tenure_lease(cohort->holder->tenure));
}

struct tenure *evl_cohort_standing(const struct evlock *lock) {
    const struct call *call = lock->tenure ? NULL : evl_call_pending(lock, CALL_ACQUIRE);
    const struct cohort *cohort = call ? call->acquire.cohort : NULL;
    const struct call *leader = cohort ? evl_cohort_leader(lock, cohort) : NULL;

    return leader ? leader->lock->tenure : lock->tenure;
}

/* --- What goes on ------------------------------------------------------------------------------------------------- */

/* Whose wait has not ended by now: that of those before it ends by this. */
static struct call *cohort_next(struct cohort *cohort, int64_t now) {
    struct call *call;

    while ((call = TAILQ_FIRST(&cohort->waiting)) && now >= call->acquire.wait_until)
        evl_call_end(call, EVLOCK_ETIMEDOUT, "");
    return call;
}

/* What is known of an attempt goes with it. In line, the heir looks at once, since much may have been missed. */
static void cohort_inherit(struct call *heir, const struct call *call) {
    bool in_line = evl_lease_in_line(evl_tenure_lease(call->lock->tenure));

    heir->acquire.contended = call->acquire.contended;
    heir->acquire.looked = call->acquire.looked;
    heir->acquire.looks_anew = call->acquire.looks_anew;
    heir->acquire.attempts += call->acquire.attempts;
    heir->acquire.handed = call->acquire.handed;
    heir->acquire.asked_at = call->acquire.asked_at;
    heir->acquire.asked_time = call->acquire.asked_time;
    heir->acquire.asked_of = call->acquire.asked_of;
    heir->acquire.ahead = call->acquire.ahead;
    evl_tenure_inherit(call->lock->tenure, heir->lock);
    evl_call_wake(heir, in_line ? cohort_now_of(heir->lock) : heir->acquire.wait_until);
}

struct call *evl_cohort_granted(struct call *call) {
    int64_t now = cohort_now_of(call->lock);
    struct call *heir;

    while (!call->acquire.passed && now >= call->acquire.wait_until && (heir = TAILQ_NEXT(call, acquire.beside))) {
        cohort_inherit(heir, call);
        evl_call_end(call, EVLOCK_ETIMEDOUT, "");
        call = heir;
    }
    return call;
}

/* One whose replicas are being asked is not passed on: these belong to its call. */
static bool cohort_pass_attempt(const struct call *call) {
    const struct tenure *tenure = call->lock->tenure;
    struct call *heir = TAILQ_NEXT(call, acquire.beside);

    if (!heir || !tenure || evl_lease_state(evl_tenure_lease(call->lock->tenure)) != LEASE_ACQUIRING)
        return false;
    cohort_inherit(heir, call);
    return true;
}

/* The bound, after which other processes have their turn. */
static bool cohort_may_pass(const struct cohort *cohort, int64_t now) {
    return cohort->passes < cohort->config->max_passes && now < cohort->since + cohort->config->max_pass;
}

struct call *evl_cohort_find_heir(const struct evlock *lock) {
    struct cohort *cohort = cohort_held_by(lock);
    int64_t now;

    if (!cohort || cohort_ends(lock))
        return NULL;
    now = cohort_now_of(lock);
    if (!cohort_may_pass(cohort, now) || !evl_lease_passable(evl_tenure_lease(lock->tenure), now))
        return NULL;
    return cohort_next(cohort, now);
}

void evl_cohort_give(struct evlock *lock, struct call *heir) {
    struct cohort *cohort = heir->acquire.cohort;

    assert(cohort->holder == lock && heir == TAILQ_FIRST(&cohort->waiting));
    cohort->passes++;
    cohort->holder = NULL;
    heir->acquire.passed = true;
    evl_locks_of(lock)->passed++;
    evl_tenure_pass(lock->tenure, heir->lock);
    cohort_family_of(lock)->passed(heir);
}

bool evl_cohort_pass(struct evlock *lock) {
    const struct call *call = evl_call_pending(lock, CALL_ACQUIRE);
    struct call *heir = evl_cohort_heir(lock);

    if (heir)
        evl_cohort_give(lock, heir);
    return heir || (call && call->acquire.cohort && evl_cohort_leads(call) && cohort_pass_attempt(call));
}

/* --- Invariants --------------------------------------------------------------------------------------------------- */
#ifdef EVL_CHECKS

static void cohort_check(const struct cohort *cohort) {
    const struct call *call, *first = TAILQ_FIRST(&cohort->waiting);
    uint32_t count = 0;

    assert(cohort->holder || first);
    if (cohort->holder)
        assert(evl_lease_state(evl_tenure_lease(cohort->holder->tenure)) == LEASE_HELD);
    TAILQ_FOREACH (call, &cohort->waiting, acquire.beside) {
        assert(call->acquire.cohort == cohort && !call->ended);
        implies(call->lock->tenure, call == first && !cohort->holder);
        count++;
    }
    assert(count == cohort->count);
}

void evl_cohorts_check_all(const struct locks *locks) {
    const struct cohort *cohort;

    for (size_t i = 0; i < locks->cohorts.size; i++)
        LIST_FOREACH (cohort, &locks->cohorts.places[i], link)
            cohort_check(cohort);
}

#endif
