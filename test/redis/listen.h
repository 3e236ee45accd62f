/* A listening socket at a port of loopback that nobody has. */
#ifndef EVLOCK_TEST_LISTEN_H
#define EVLOCK_TEST_LISTEN_H

/* The descriptor, which is the caller's. What cannot be had ends the program. */
int listen_at_loopback(int *ret_port);

#endif
