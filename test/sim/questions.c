/* Questions; see questions.h. */
#include "questions.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "node.h"
#include "reach.h"

enum { TOKENS_MAX = 8 };

#define VALUE_PARTS ((unsigned)EVLOCK_QUERY_LOCKED | EVLOCK_QUERY_OWNED | EVLOCK_QUERY_HOLDER)
#define QUEUE_PARTS ((unsigned)EVLOCK_QUERY_WAITERS | EVLOCK_QUERY_PLACE)

/* How long a key had, with one token or with any. */
struct span {
    struct token *token; /* NULL: any */
    bool endless;
    int64_t least, most; /* in ms, for as long as it was there */
};

/* What a node has had while the question was open. */
struct seen {
    bool absent; /* no key */
    struct span any;
    unsigned count;
    struct span spans[TOKENS_MAX]; /* of each token in its key, one after the other; later ones in place of the last */
};

struct question {
    TAILQ_ENTRY(question) link;
    struct promise *promise;
    unsigned what;           /* was asked for */
    unsigned asked;          /* of that, what the handle did not know */
    const struct token *own; /* what the handle held when it asked */
    struct seen seen[NODES_MAX];
    unsigned fewest, most; /* in the queue */
    uint64_t places;       /* at which the client waited, by bit, from 1 */
};

struct questions {
    struct world *world;
    TAILQ_HEAD(, question) open;
};

struct questions *questions_new(struct world *world) {
    struct questions *questions = calloc(1, sizeof(*questions));

    questions->world = world;
    TAILQ_INIT(&questions->open);
    return questions;
}

static void drop(struct questions *questions, struct question *question) {
    TAILQ_REMOVE(&questions->open, question, link);
    free(question);
}

void questions_free(struct questions *questions) {
    while (!TAILQ_EMPTY(&questions->open))
        drop(questions, TAILQ_FIRST(&questions->open));
    free(questions);
}

/* --- What there is ------------------------------------------------------------------------------------------------ */

static struct span *span_of(struct seen *seen, struct token *token) {
    for (unsigned i = 0; i < seen->count; i++)
        if (seen->spans[i].token == token)
            return &seen->spans[i];
    if (seen->count < TOKENS_MAX)
        seen->count++;
    seen->spans[seen->count - 1] = (struct span){.token = token, .least = INT64_MAX};
    return &seen->spans[seen->count - 1];
}

static void note_span(struct span *span, bool endless, int64_t left) {
    span->endless |= endless;
    span->most = endless ? INT64_MAX : left > span->most ? left : span->most;
    span->least = !endless && left < span->least ? left : span->least;
}

static void note_key(struct questions *questions, struct question *question, struct node *node) {
    const char *key = judge_key(question->promise->handle->key), *bytes;
    struct seen *seen = &question->seen[node->index];
    int64_t expiry, left;
    size_t len;

    bytes = sim_server_get(node_now(node), key, strlen(key), &len);
    if (!bytes) {
        seen->absent = true;
        return;
    }
    expiry = sim_server_expiry(node->server, key, strlen(key));
    left = expiry / MS - clock_read(&node->clock, questions->world->now) / MS;
    left = left > 1 ? left : 1; /* what is there has that much */
    note_span(&seen->any, expiry == -1, left);
    note_span(span_of(seen, judge_known(questions->world->judge, bytes, len)), expiry == -1, left);
}

static void note_queue(struct questions *questions, struct question *question) {
    const struct handle *handle = question->promise->handle;
    unsigned count = judge_waiting(questions->world->judge, handle->key, handle->client, &question->places);

    question->fewest = count < question->fewest ? count : question->fewest;
    question->most = count > question->most ? count : question->most;
}

static void look_at(struct questions *questions, struct question *question, struct node *node) {
    if (question->asked & QUEUE_PARTS)
        note_queue(questions, question);
    if (question->asked & ~QUEUE_PARTS)
        note_key(questions, question, node);
}

/* Where there are two servers, either may answer. */
static void look_at_place(struct questions *questions, struct question *question, unsigned index) {
    const struct world *world = questions->world;

    look_at(questions, question, world->nodes[index]);
    if (world->promotion.former)
        look_at(questions, question, world->promotion.former);
}

void questions_look(struct questions *questions, struct node *node) {
    const struct world *world = questions->world;
    struct question *question;

    TAILQ_FOREACH (question, &questions->open, link)
        for (unsigned i = 0; i < world->plan.servers; i++)
            if (!node || node->index == i)
                look_at_place(questions, question, i);
}

/* --- What may be told --------------------------------------------------------------------------------------------- */

/* What a node had with this token, or with any (NULL); NULL: nothing. */
static const struct span *find(const struct seen *seen, const struct token *token) {
    if (!token)
        return seen->count > 0 ? &seen->any : NULL;
    for (unsigned i = 0; i < seen->count; i++)
        if (seen->spans[i].token == token)
            return &seen->spans[i];
    return NULL;
}

/* Whether it had that all the time, so that whenever it answered, it has said so. */
static bool had_always(const struct question *question, unsigned n, const struct token *token) {
    const struct process *process = question->promise->process;
    const struct seen *seen = &question->seen[n];

    return find(seen, token) && !seen->absent && (!token || seen->count == 1) &&
           !reach_fails(process, process->world->nodes[n], question->promise->asked);
}

static unsigned quorum_of(const struct question *question) {
    return question->promise->process->world->plan.nodes / 2 + 1;
}

/* On how many nodes the token was seen; `surely`: and nothing else was, so that each that answered has said so. NULL:
 * any token. */
static unsigned count_token(const struct question *question, const struct token *token, bool surely) {
    const struct world *world = question->promise->process->world;
    unsigned sum = 0;

    for (unsigned n = 0; n < world->plan.servers; n++)
        sum += surely ? had_always(question, n, token) : find(&question->seen[n], token) != NULL;
    return sum;
}

/* With several nodes, those with other tokens do not count. */
static bool may_be_ttl(const struct question *question, const struct token *token, int64_t value) {
    const struct world *world = question->promise->process->world;
    unsigned up_to = 0, beyond = 0, endless = 0;

    for (unsigned n = 0; n < world->plan.servers; n++) {
        const struct span *span = find(&question->seen[n], token);
        up_to += span && value <= span->most;
        beyond += span && value < span->least && had_always(question, n, token);
        endless += span && span->endless;
    }
    if (value == EVLOCK_NO_EXPIRY)
        return endless >= quorum_of(question);
    /* any quorum may have answered first */
    return value > 0 && up_to >= quorum_of(question) && beyond < world->plan.nodes;
}

/* Whether all that is told of the lock may be said of one that this token has. */
static bool may_be_held_by(const struct question *question, const struct token *token, const evlock_answer *answer) {
    unsigned asked = question->asked;

    return count_token(question, token, false) >= quorum_of(question) &&
           (!(asked & EVLOCK_QUERY_LOCKED) || answer->locked) &&
           (!(asked & EVLOCK_QUERY_OWNED) || answer->owned == (token == question->own)) &&
           (!(asked & EVLOCK_QUERY_HOLDER) || strcmp(answer->holder, token->name) == 0) &&
           (!(asked & EVLOCK_QUERY_TTL) || may_be_ttl(question, token, answer->ttl_ms));
}

static bool may_be_held(const struct question *question, const evlock_answer *answer) {
    const struct world *world = question->promise->process->world;

    for (unsigned n = 0; n < world->plan.servers; n++)
        for (unsigned i = 0; i < question->seen[n].count; i++)
            if (may_be_held_by(question, question->seen[n].spans[i].token, answer))
                return true;
    return false;
}

/* Whether it may be told that no token is on a quorum. */
static bool may_be_free(const struct question *question) {
    const struct world *world = question->promise->process->world;

    for (unsigned n = 0; n < world->plan.servers; n++)
        for (unsigned i = 0; i < question->seen[n].count; i++)
            if (count_token(question, question->seen[n].spans[i].token, true) >= quorum_of(question))
                return false;
    return true;
}

static bool says_nothing(const evlock_answer *answer) {
    return !answer->locked && !answer->owned && answer->ttl_ms == 0 && answer->holder_len == 0;
}

/* What one thing alone says does not say who has the lock. */
static bool fits_lock(const struct question *question, const evlock_answer *answer) {
    unsigned asked = question->asked & ~QUEUE_PARTS;

    if (!asked)
        return says_nothing(answer);
    if (question->asked == EVLOCK_QUERY_TTL)
        return answer->ttl_ms ? may_be_ttl(question, NULL, answer->ttl_ms)
                              : count_token(question, NULL, true) < quorum_of(question);
    if (question->asked == EVLOCK_QUERY_OWNED && !answer->owned)
        return count_token(question, question->own, true) < quorum_of(question);
    return says_nothing(answer) ? may_be_free(question) || may_be_held(question, answer)
                                : may_be_held(question, answer);
}

static bool fits_queue(const struct question *question, const evlock_answer *answer) {
    int64_t waiters = answer->waiters, place = answer->place;

    if (question->asked & EVLOCK_QUERY_WAITERS ? waiters < question->fewest || waiters > question->most : waiters != 0)
        return false;
    if (place == 0 || place >= 64) /* places so far back are not kept */
        return place == 0 || question->asked & EVLOCK_QUERY_PLACE;
    return question->asked & EVLOCK_QUERY_PLACE && question->places >> place & 1;
}

static bool fits(const struct question *question, const evlock_answer *answer) {
    unsigned what = question->what;

    return answer->holder && strlen(answer->holder) == answer->holder_len &&
           (what & EVLOCK_QUERY_LOCKED || !answer->locked) && (what & EVLOCK_QUERY_OWNED || !answer->owned) &&
           (what & EVLOCK_QUERY_TTL || !answer->ttl_ms) && (what & EVLOCK_QUERY_HOLDER || !answer->holder_len) &&
           fits_lock(question, answer) && fits_queue(question, answer);
}

/* --- Open and closed ---------------------------------------------------------------------------------------------- */

/* What the handle knows by itself. */
static unsigned known_of(const struct question *question) {
    unsigned known = question->own ? 0 : EVLOCK_QUERY_OWNED;

    return question->promise->handle->doing == ACQUIRING ? known : known | EVLOCK_QUERY_PLACE;
}

void questions_open(struct questions *questions, struct promise *promise, unsigned what) {
    struct question *question = calloc(1, sizeof(*question));

    question->promise = promise;
    question->what = what;
    question->own = evlock_is_held(promise->handle->lock) ? promise->handle->token : NULL;
    question->asked = what & ~known_of(question);
    question->fewest = UINT_MAX;
    for (unsigned n = 0; n < NODES_MAX; n++)
        question->seen[n].any.least = INT64_MAX;
    TAILQ_INSERT_TAIL(&questions->open, question, link);
    for (unsigned n = 0; n < questions->world->plan.servers; n++)
        look_at_place(questions, question, n);
}

void questions_close(struct questions *questions, struct promise *promise, int status, const evlock_answer *answer) {
    struct question *question;

    TAILQ_FOREACH (question, &questions->open, link)
        if (question->promise == promise)
            break;
    if (!question)
        return;
    if ((status == EVLOCK_OK) != (answer != NULL))
        violated(questions->world, "call %u, a query, ends with %s and %s answer", promise->number,
                 evlock_strerror(status), answer ? "an" : "no");
    else if (answer && !promise->process->left_out && /* a node asked over both of its paths may count twice */
             !questions->world->scenario->gaps &&     /* and what is out of reach is seen here */
             !fits(question, answer))
        violated(questions->world,
                 "call %u, a query for %#x, is told: locked %d, owned %d, ttl %" PRId64
                 ", holder \"%s\", waiters %" PRId64 ", place %" PRId64,
                 promise->number, question->what, answer->locked, answer->owned, answer->ttl_ms, answer->holder,
                 answer->waiters, answer->place);
    drop(questions, question);
}
