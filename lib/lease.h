/*
 * The lock algorithm: the whole life of one token, from the first command that may set it to the last that may find it,
 * over N nodes with a quorum; one node is a quorum of one. It takes inputs (a call, a node's answer, a node's coming
 * and going, the time) and puts out what to send and what to tell. It reads no clock, sends nothing, allocates nothing
 * and calls nobody: `now` is a parameter. Moments and spans are in microseconds; what is in milliseconds ends in _ms.
 *
 * A random token is never used twice; one that is its user's is, once nothing of its last use can still run. What an
 * attempt may have left on a server is undone by the same lease in the background, while the next attempt is already
 * another lease.
 */
#ifndef EVL_LEASE_H
#define EVL_LEASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LEASE_NEVER INT64_MAX
#define LEASE_NODES 15          /* at most */
#define LEASE_NO_CUT UINT32_MAX /* in place of a ttl */
#define LEASE_AGES UINT32_MAX   /* in place of a time in ms: seven weeks or more */

enum lease_state {
    LEASE_ACQUIRING, /* asked; the quorum is open */
    LEASE_HELD,
    LEASE_LOST,      /* ended without a release, and told; kept for a release that may follow */
    LEASE_RELEASING, /* the user waits for the release */
    LEASE_UNDOING,   /* nobody waits; the token is being removed from where it may be */
    LEASE_ENDED,     /* no node is wanted for anything */
};

enum lease_command {
    LEASE_NOTHING,
    LEASE_ACQUIRE,
    LEASE_ADOPT,
    LEASE_RAISE, /* give the node's fence counter at least the lease's last fence */
    LEASE_RENEW,
    LEASE_REFRESH, /* a renewal that sets the ttl: late, it would shorten what has become longer */
    LEASE_RESTORE, /* a renewal that sets the token where the only node has forgotten it, and granted it to nobody */
    LEASE_REARM,   /* on a node that has not the token: take it, with all its ttl */
    LEASE_MEND,    /* the same, for what is left of the lease; if it has the token: not for less */
    LEASE_ADD,
    LEASE_REPLACE,
    LEASE_RELEASE,
};

enum lease_verdict {
    LEASE_YES,       /* done */
    LEASE_NO,        /* another's (acquire), or not there (the rest) */
    LEASE_AGAIN,     /* it did not run, and would if sent once more */
    LEASE_REFUSED,   /* it did not run; it may at another time */
    LEASE_FORBIDDEN, /* it did not run, and never will */
    LEASE_UNKNOWN,   /* nobody knows whether it ran or will still run */
    LEASE_QUEUED,    /* another's, and this one waits in the queue: the server will grant it by itself */
};

/* A node's answer to the oldest command that it has not answered. */
struct lease_answer {
    enum lease_verdict verdict;
    int status;     /* with REFUSED, FORBIDDEN, UNKNOWN: what to tell */
    int64_t ttl;    /* with YES to anything but ACQUIRE and RELEASE: what the server has now, or LEASE_NEVER;
                     * with QUEUED: what the holder has left */
    int64_t fence;  /* with YES to an ACQUIRE of a fenced lease: the number drawn */
    uint16_t spare; /* and how many after it */
    int64_t time;   /* with QUEUED: the server's clock */
    int64_t ahead;  /* with QUEUED: how many wait ahead */
};

/* What was agreed for a lease; shared by leases. */
struct lease_terms {
    int64_t ttl;      /* 0: no expiry */
    int64_t max_ttl;  /* where nodes are excluded, no more than this is counted on; 0: no limit */
    int64_t interval; /* between renewals; 0: none */
    int64_t grain;    /* renewals fall due on multiples of this, so that those of many leases come together; 0: none */
    int64_t phase;    /* by which these are shifted, so that those of many clients do not; less than the grain */
    int64_t lead;     /* losses are told so long before the deadline, since a timer may be late */
    int64_t max_hold; /* from the grant to the last renewal; LEASE_NEVER: no limit */
    int64_t patience; /* how long an attempt without a quorum waits for a node, where there are several */
    bool kept;        /* for their owner: these are of leases that are held for ever */
    bool replicated;  /* replicas confirm the grant, and nothing after it */
    int64_t risk;     /* at risk when a due renewal is not confirmed and no more than this is left */
};

/* What an input leads to. */
enum lease_event {
    LEASE_TELL_GRANTED = 1,
    LEASE_TELL_FAILED = 2,   /* the attempt: status */
    LEASE_TELL_EXTENDED = 4, /* the extension: status */
    LEASE_TELL_RELEASED = 8, /* the release: status */
    LEASE_TELL_LOST = 16,    /* reason, agreed */
    LEASE_TELL_RISK = 32,    /* reason, agreed */
};

struct lease_out {
    uint32_t wake; /* nodes (by bit) for which evl_lease_take() has a command */
    uint32_t events;
    int status;     /* of the failed attempt, the extension or the release */
    int reason;     /* why it is lost, or what stands in the way of its renewal */
    uint8_t denied; /* with FAILED: the nodes that did not agree */
    uint8_t agreed; /* the nodes that keep it longer than the quorum does */
};

/* What a lease knows of one node. This and the lease are laid out to be small: there may be very many. */
struct lease_slot {
    int64_t deadline; /* until then the node keeps the token for sure; 0: it does not count */
    int64_t sent;     /* the clock before the last command that sets a ttl was queued */
    union {
        int64_t counter; /* until it is held: the node's fence counter at least */
        int64_t uncut;   /* while a replacement is unanswered: the deadline before */
    };
    uint32_t replacing_ms; /* the ttl that an unanswered replacement or refresh asks for, or one just lost; or
                            * LEASE_NO_CUT */
    uint32_t cut_ms;       /* the ttl that a lost one may set until `cut_over`; or LEASE_NO_CUT */
    uint32_t mend_ms;      /* while HELD: when to see whether the node is to be mended, from `since`; or LEASE_AGES */
    enum lease_command want : 4;   /* to be sent next */
    enum lease_command flying : 4; /* unanswered, other than a release; at most one, and always before a release */
    unsigned vote : 2;             /* the node's say in the acquire, extension or release that is under way */
    unsigned trace : 2;            /* whether the token may be there */
    unsigned stray : 2;            /* whether an acquire that was lost with its connection may still run */
    unsigned late : 2;             /* the same of what prolongs and, with an own token, of anything */
    bool voting : 1;               /* `flying` is the extension that is under way, not one that was given up */
    bool releasing : 1;            /* a release is unanswered */
    bool resent : 1;               /* a release was lost with its connection and may have run */
    bool removed : 1;              /* a release has run, which leaves the queue too, or will never be allowed to */
    bool fresh : 1;                /* confirmed since the renewal began */
    bool replaced : 1;             /* the server is not the process that last confirmed */
    bool spares : 1;               /* until it is held: the counter has the spare fences, after the number drawn */
    bool twice : 1;                /* set again where it may have been: two commands may do so, one after a release */
    int8_t trouble;                /* while HELD: why the last renewal failed here; 0: it did not */
};

struct lease {
    const struct lease_terms *terms;
    int64_t since; /* ACQUIRING: when it began; else when the quorum was complete, if ever it was */
    int64_t fence; /* 0: none */
    int64_t due;   /* the next renewal (HELD) or repeated release (RELEASING, UNDOING) */
    int64_t asked; /* when the renewal under way began; 0: none is */
    int64_t until; /* the end of the user's wait (HELD, RELEASING), or of the need to undo (UNDOING) */
    union {
        int64_t extension;  /* what the extension under way asks for */
        int64_t last_fence; /* while it is not tied: the last that was drawn for it and those it is passed on to; at
                             * first, how many these are that are asked for */
    };
    int64_t cut_over;    /* from then on nothing that was lost and may cut it runs any more; LEASE_NEVER: not said */
    uint32_t longest_ms; /* the longest that the token may live on a server; or LEASE_AGES */
    int8_t status;       /* the last failure */
    uint8_t nodes : 4;
    bool tied : 1; /* to its user, who knows the token or has changed the ttl: it is not passed on */
    enum lease_state state : 3;
    enum lease_command extending : 4; /* while HELD: LEASE_ADD or LEASE_REPLACE if an extension is under way */
    bool fenced : 1;                  /* the acquire draws a fence */
    bool queued : 1;                  /* the acquire joins a queue, on the only node; it may ask any number of times */
    bool raising : 1;                 /* the fence is known; a quorum has to have it */
    bool adopted : 1;                 /* the token was not set by this lease */
    bool own : 1;                     /* the token may be set again by another lease */
    bool granted : 1;                 /* it has been held */
    bool left : 1;                    /* a release was forbidden, and what is there is left to its ttl */
    bool failing : 1;                 /* the last renewal was not confirmed */
    bool warned : 1;                  /* of the present risk */
    struct lease_slot slots[];
};

/* Whether a command is a renewal, of whichever form. */
static inline bool evl_lease_renews(enum lease_command command) {
    return command == LEASE_RENEW || command == LEASE_REFRESH || command == LEASE_RESTORE;
}

/* Whether a command may let the token live longer where it is, and so has it there. */
bool evl_lease_prolongs(enum lease_command command);

/* What the two clocks may differ by over `ttl`: one part in a hundred, and the server's grain. */
int64_t evl_lease_drift(int64_t ttl);

/* What is little beside `ttl`: the lead unless another is agreed, and what the deadlines of nodes may differ by that
 * keep a lease equally long. */
int64_t evl_lease_moment(int64_t ttl);

/* How a lease begins: an acquire, unless it adopts or watches. */
struct lease_entry {
    bool fenced;      /* an acquire that draws a fence, */
    uint16_t spare;   /* and so many after it, for those whom the lease may be passed on to */
    bool queued;      /* an acquire that joins the queue of its only node */
    bool adopt;       /* the token was set by somebody else */
    bool own;         /* the token is its user's, and may be set again by another lease */
    uint16_t watched; /* takes nothing, but lasts while a release of its own token may run on one of these nodes (by
                       * bit): one that was lost with the node's connection, and was no lease's */
};

/* The size of a lease over so many nodes. */
static inline size_t evl_lease_size(unsigned nodes) {
    return sizeof(struct lease) + nodes * sizeof(struct lease_slot);
}

/* Begins a lease, in memory of its size. The terms must stay. */
void evl_lease_begin(struct lease *lease, const struct lease_terms *terms, unsigned nodes,
                     const struct lease_entry *entry, int64_t now, struct lease_out *out);

/* The command to queue for a node right now, or LEASE_NOTHING. From here on it counts as sent. A renewal goes as
 * `renewal` says: LEASE_RENEW, LEASE_REFRESH if it may, or LEASE_RESTORE. */
enum lease_command evl_lease_take(struct lease *lease, unsigned node, enum lease_command renewal, int64_t now);

/* Whether a renewal may set the ttl: not if the token may have a longer one, or get one from somebody else. */
bool evl_lease_may_refresh(const struct lease *lease);

/* A node answered, or will never answer, its oldest command. */
void evl_lease_answer(struct lease *lease, unsigned node, const struct lease_answer *answer, int64_t now,
                      struct lease_out *out);

/* How does a queued acquire stand? Asks unless that is being asked already. */
void evl_lease_look(struct lease *lease, struct lease_out *out);

/* The server says that it has granted a queued acquire, at `since` at the earliest, by what it would have answered. */
void evl_lease_granted(struct lease *lease, int64_t since, const struct lease_answer *yes, int64_t now,
                       struct lease_out *out);

/* A node cannot be sent anything for the time being. */
void evl_lease_node_away(struct lease *lease, unsigned node, int status, int64_t now, struct lease_out *out);

/* A node is back on a new connection. `settled`: what was lost with the old one cannot run any more; `replaced`: it is
 * another server process than before. */
void evl_lease_node_back(struct lease *lease, unsigned node, bool settled, bool replaced, int64_t now,
                         struct lease_out *out);

/* Its user extends it: only while it is HELD, and no other extension is under way. That is answered by `until` at the
 * latest. */
void evl_lease_extend(struct lease *lease, enum lease_command command, int64_t ttl, int64_t until,
                      struct lease_out *out);

/* Its user releases it: only while it is HELD or LOST. That is answered by `until` at the latest. */
void evl_lease_release(struct lease *lease, int64_t until, struct lease_out *out);

/* Nobody wants it any more: whatever it may have left is undone, and nothing is told from here on. */
void evl_lease_abandon(struct lease *lease, int64_t now, struct lease_out *out);

/* Whether nothing that this lease has sent can still shorten it, or join its queue: an adopter could not know. */
bool evl_lease_exportable(const struct lease *lease, int64_t now);

/* Somebody else has it now: it ends, and leaves the token where it is. */
void evl_lease_export(struct lease *lease);

/* Its user knows its token now. */
void evl_lease_tie(struct lease *lease);

/* Whether another may have it as it is, who then believes in it: it is held, its user could not change or use it any
 * more, all is well with it, and half of its ttl is left. */
bool evl_lease_passable(const struct lease *lease, int64_t now);

/* Such a one goes to another holder, of equal terms, which must stay: it counts as granted now. */
void evl_lease_pass(struct lease *lease, const struct lease_terms *terms, int64_t now, struct lease_out *out);

/* An acquire, or a grant that nobody was told of, is another's from here on, of equal terms, which must stay. */
void evl_lease_inherit(struct lease *lease, const struct lease_terms *terms);

/* Time went on. What had come by `heard` has been read: nothing is given up for want of an answer before that. */
void evl_lease_time(struct lease *lease, int64_t now, int64_t heard, struct lease_out *out);

/* It is held, and nobody has heard of a risk. False: there was none; else it is told anew, if it lasts. */
bool evl_lease_warn_anew(struct lease *lease);

/* When evl_lease_time() is wanted next. */
int64_t evl_lease_next(const struct lease *lease);

/* The same, but for what is given up for want of an answer: for that, more may have to be heard first. */
int64_t evl_lease_next_exact(const struct lease *lease);

/* Until when the holder may believe in it; 0 when it does not hold. */
int64_t evl_lease_deadline(const struct lease *lease);

/* The nodes that keep the token until then, or all but: what these are beyond the quorum may forget it. 0 when it does
 * not hold. */
unsigned evl_lease_keepers(const struct lease *lease);

/* The ttl for which a command asks that is taken now. */
int64_t evl_lease_ttl(const struct lease *lease, enum lease_command command, int64_t now);

/* Ended, and no answer is outstanding: the memory may go. */
bool evl_lease_over(const struct lease *lease);

/* Until when something may be left on a server that a release was forbidden to remove; 0: nothing is. */
int64_t evl_lease_left_until(const struct lease *lease);

/* Asserts what must be true between two inputs; see check.h. */
void evl_lease_check(const struct lease *lease);

/* What others read of a lease: nobody but its tests looks into the struct. */

static inline enum lease_state evl_lease_state(const struct lease *lease) {
    return lease->state;
}

static inline const struct lease_terms *evl_lease_terms(const struct lease *lease) {
    return lease->terms;
}

static inline unsigned evl_lease_nodes(const struct lease *lease) {
    return lease->nodes;
}

/* Its acquire draws a fence. */
static inline bool evl_lease_fenced(const struct lease *lease) {
    return lease->fenced;
}

/* Its acquire joins the queue. */
static inline bool evl_lease_queued(const struct lease *lease) {
    return lease->queued;
}

/* The fence that it has; 0: none. */
static inline int64_t evl_lease_fence(const struct lease *lease) {
    return lease->fence;
}

/* Fences after that one: those it has, or, before they are drawn, asks for. */
static inline int64_t evl_lease_spare(const struct lease *lease) {
    return lease->tied ? 0 : lease->last_fence - lease->fence;
}

/* The last fence that it or whoever it is passed on to may have: what counters are raised to. */
static inline int64_t evl_lease_last_fence(const struct lease *lease) {
    return lease->tied ? lease->fence : lease->last_fence;
}

/* When the quorum was complete; before that, when it began. */
static inline int64_t evl_lease_since(const struct lease *lease) {
    return lease->since;
}

/* It may be in the queue still, or again. */
static inline bool evl_lease_may_queue(const struct lease *lease) {
    return lease->queued && !lease->granted;
}

/* It waits in the queue, or is about to. */
static inline bool evl_lease_in_line(const struct lease *lease) {
    return lease->queued && lease->state == LEASE_ACQUIRING;
}

/* An extension or a release is to be answered to its user. */
static inline bool evl_lease_owes_answer(const struct lease *lease) {
    return lease->extending || lease->state == LEASE_RELEASING;
}

/* What evl_lease_take() has for the node, unless time or an unanswered command stands against it. */
static inline enum lease_command evl_lease_wanted(const struct lease *lease, unsigned node) {
    return lease->slots[node].want;
}

/* The command that the node answers next, when there is one. */
static inline enum lease_command evl_lease_unanswered(const struct lease *lease, unsigned node) {
    return lease->slots[node].flying ? lease->slots[node].flying : LEASE_RELEASE;
}

/* How many commands the node has not answered. */
static inline unsigned evl_lease_flying(const struct lease *lease, unsigned node) {
    return (lease->slots[node].flying != LEASE_NOTHING) + lease->slots[node].releasing;
}

/* When the last command that sets a ttl was queued for the node. */
static inline int64_t evl_lease_sent(const struct lease *lease, unsigned node) {
    return lease->slots[node].sent;
}

#endif
