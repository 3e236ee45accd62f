/*
 * A simulated server beside a real one, and connections that reach both: what is sent to one is sent to the other, and
 * their answers are compared. Owns the connections; the servers are the test's. The simulated clock is set to the
 * machine's, which the real one reads.
 */
#ifndef EVLOCK_SIM_PAIR_H
#define EVLOCK_SIM_PAIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server.h"
#include "world/resp.h"

/* How two answers may differ. */
enum likeness {
    SAME,      /* but for the server's clock in microseconds, which may be anywhere */
    TIMED,     /* in numbers of milliseconds, too */
    REORDERED, /* in the order of their bytes */
};

/* No two times of a test are closer than this, and no sequence of commands may last as long. */
#define PAIR_SLACK_MS 20000

struct pair {
    const char *socket; /* of the real server */
    sim_server *sim;
    uint64_t random;
};

/* A connection to each of the two. */
struct line {
    struct pair *pair;
    int fd;
    sim_session *session; /* NULL: it was ended */
    struct output real, sim;
};

int64_t machine_now(void); /* microseconds */
uint64_t pair_draw(struct pair *pair, uint64_t below);

void line_open(struct line *line, struct pair *pair);
void line_close(struct line *line);
/* Sends bytes to both; to the simulated server in pieces, at times. */
void line_send(struct line *line, const char *bytes, size_t len);
/* Reads what they answered up to the answer to a PING that this sends, or up to their end. */
void line_read(struct line *line);
/* Whether they answered alike since it was asked last; if not, says how. */
bool line_alike(struct line *line, enum likeness likeness);

/* A command in RESP. */
void command_write(struct output *to, int argc, const char *const *argv);

#endif
