/* See listen.h. */
#include "listen.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

int listen_at_loopback(int *ret_port) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    if (fd < 0 || bind(fd, (struct sockaddr *)&at, len) != 0 || listen(fd, SOMAXCONN) != 0 ||
        getsockname(fd, (struct sockaddr *)&at, &len) != 0)
        abort();
    *ret_port = ntohs(at.sin_port);
    return fd;
}
