/* Questions; see questions.h. */
#include "questions.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "node.h"
#include "reach.h"

enum { TOKENS_MAX = 8 };

/* What a node has had while the question was open. */
struct seen {
    bool absent, endless; /* no key; one without expiry */
    unsigned count;
    struct token *tokens[TOKENS_MAX]; /* in its key, one after the other; later ones in place of the last */
    int64_t least, most;              /* of the key's ttls, in ms; least: 0 if it was absent */
};

struct question {
    TAILQ_ENTRY(question) link;
    struct promise *promise;
    enum asked what;
    const struct token *own; /* what the handle held when it asked */
    struct seen seen[NODES_MAX];
    unsigned fewest, most; /* in the queue */
    uint64_t places;       /* at which the client waited, by bit, from 1 */
};

struct questions {
    struct world *world;
    TAILQ_HEAD(, question) open;
};

static const char *const words[] = {"locked", "owned", "server_ttl", "holder", "waiters", "place"};

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

static void note_token(struct seen *seen, struct token *token) {
    for (unsigned i = 0; i < seen->count; i++)
        if (seen->tokens[i] == token)
            return;
    seen->tokens[seen->count < TOKENS_MAX ? seen->count++ : TOKENS_MAX - 1] = token;
}

static void note_key(struct questions *questions, struct question *question, struct node *node) {
    const char *key = judge_key(question->promise->handle->key), *bytes;
    struct seen *seen = &question->seen[node->index];
    int64_t expiry, left;
    size_t len;

    bytes = sim_server_get(node_now(node), key, strlen(key), &len);
    if (!bytes) {
        seen->absent = true;
        seen->least = 0;
        return;
    }
    note_token(seen, judge_known(questions->world->judge, bytes, len));
    expiry = sim_server_expiry(node->server, key, strlen(key));
    left = expiry / MS - clock_read(&node->clock, questions->world->now) / MS;
    seen->endless |= expiry == -1;
    seen->most = expiry == -1 ? INT64_MAX : left > seen->most ? left : seen->most;
    seen->least = expiry != -1 && left < seen->least ? left : seen->least;
}

static void note_queue(struct questions *questions, struct question *question) {
    const struct handle *handle = question->promise->handle;
    unsigned count = judge_waiting(questions->world->judge, handle->key, handle->client, &question->places);

    question->fewest = count < question->fewest ? count : question->fewest;
    question->most = count > question->most ? count : question->most;
}

static void look_at(struct questions *questions, struct question *question, struct node *node) {
    if (question->what >= ASKED_WAITERS)
        note_queue(questions, question);
    else
        note_key(questions, question, node);
}

void questions_look(struct questions *questions, struct node *node) {
    const struct world *world = questions->world;
    struct question *question;

    TAILQ_FOREACH (question, &questions->open, link)
        for (unsigned i = 0; i < world->plan.nodes; i++)
            if (!node || node == world->nodes[i])
                look_at(questions, question, world->nodes[i]);
}

/* --- What may be told --------------------------------------------------------------------------------------------- */

/* On how many nodes the token was seen; `surely`: and nothing else was, so that each that answered has said so. NULL:
 * any token. */
static unsigned count_token(const struct question *question, const struct token *token, bool surely) {
    const struct process *process = question->promise->process;
    const struct world *world = process->world;
    unsigned sum = 0;

    for (unsigned n = 0; n < world->plan.nodes; n++) {
        const struct seen *seen = &question->seen[n];
        bool found = !token && seen->count > 0;
        for (unsigned i = 0; i < seen->count; i++)
            found |= seen->tokens[i] == token;
        if (surely && (seen->absent || (token && seen->count > 1) ||
                       reach_fails(process, world->nodes[n], question->promise->asked)))
            found = false;
        sum += found;
    }
    return sum;
}

/* Whether it may be told that one token is on a quorum; `free`: that none is. With `text`, that of a holder so named.
 */
static bool may_be_held(const struct question *question, bool free, const char *text) {
    const struct world *world = question->promise->process->world;
    unsigned quorum = world->plan.nodes / 2 + 1;

    for (unsigned n = 0; n < world->plan.nodes; n++)
        for (unsigned i = 0; i < question->seen[n].count; i++) {
            const struct token *token = question->seen[n].tokens[i];
            if (count_token(question, token, free) >= quorum && (!text || strcmp(text, token->name) == 0))
                return !free;
        }
    return free;
}

/* Ttls may come from nodes with different tokens. */
static bool may_be_ttl(const struct question *question, int64_t value) {
    const struct process *process = question->promise->process;
    const struct world *world = process->world;
    unsigned quorum = world->plan.nodes / 2 + 1, up_to = 0, beyond = 0;

    for (unsigned n = 0; n < world->plan.nodes; n++) {
        const struct seen *seen = &question->seen[n];
        up_to += seen->count > 0 && value <= seen->most;
        beyond += value < seen->least && !reach_fails(process, world->nodes[n], question->promise->asked);
    }
    return up_to >= quorum && beyond < world->plan.nodes; /* any quorum may have answered first */
}

static bool may_be_endless(const struct question *question) {
    const struct world *world = question->promise->process->world;
    unsigned count = 0;

    for (unsigned n = 0; n < world->plan.nodes; n++)
        count += question->seen[n].endless;
    return count >= world->plan.nodes / 2 + 1;
}

static bool may_be_free(const struct question *question) {
    return count_token(question, NULL, true) < question->promise->process->world->plan.nodes / 2 + 1;
}

static bool fits_owned(const struct question *question, int64_t value) {
    unsigned quorum = question->promise->process->world->plan.nodes / 2 + 1;

    if (!question->own)
        return value == 0;
    return value ? count_token(question, question->own, false) >= quorum
                 : count_token(question, question->own, true) < quorum;
}

static bool fits(const struct question *question, int status, int64_t value, const char *text) {
    switch (question->what) {
    case ASKED_LOCKED:
        return may_be_held(question, value == 0, NULL) && (value == 0 || value == 1);
    case ASKED_OWNED:
        return fits_owned(question, value);
    case ASKED_TTL:
        if (status == EVLOCK_ENOTTL)
            return may_be_endless(question);
        return status == EVLOCK_OK ? may_be_ttl(question, value) : may_be_free(question);
    case ASKED_HOLDER:
        return may_be_held(question, status != EVLOCK_OK, text);
    case ASKED_WAITERS:
        return status == EVLOCK_OK && value >= question->fewest && value <= question->most;
    case ASKED_PLACE:
        return status != EVLOCK_OK || (value >= 1 && value < 64 && question->places >> value & 1);
    default:
        return false;
    }
}

/* --- Open and closed ---------------------------------------------------------------------------------------------- */

void questions_open(struct questions *questions, struct promise *promise, enum asked what) {
    struct question *question = calloc(1, sizeof(*question));

    question->promise = promise;
    question->what = what;
    question->own = evlock_is_held(promise->handle->lock) ? promise->handle->token : NULL;
    question->fewest = UINT_MAX;
    for (unsigned n = 0; n < NODES_MAX; n++)
        question->seen[n].least = INT64_MAX;
    TAILQ_INSERT_TAIL(&questions->open, question, link);
    for (unsigned n = 0; n < questions->world->plan.nodes; n++)
        look_at(questions, question, questions->world->nodes[n]);
}

void questions_close(struct questions *questions, struct promise *promise, int status, int64_t value,
                     const char *text) {
    struct question *question;

    TAILQ_FOREACH (question, &questions->open, link)
        if (question->promise == promise)
            break;
    if (!question)
        return;
    if ((status == EVLOCK_OK || status == EVLOCK_ENOTHELD || status == EVLOCK_ENOTTL) &&
        !promise->process->left_out && /* a node that was asked over both of its paths may count twice */
        !fits(question, status, value, text))
        violated(questions->world, "call %u, a query by %s, is told %s, %" PRId64 ", \"%s\"", promise->number,
                 words[question->what], evlock_strerror(status), value, text ? text : "");
    drop(questions, question);
}
