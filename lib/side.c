/* Side connections; see side.h. */
#include "side.h"

static void side_on_login_done(struct login *login, bool settled) {
    struct connection *connection = &login->connection;

    (void)settled;
    evl_login_keep(login);
    evl_connection_return(connection);
    evl_pipe_send_waiting(evl_pipe_of(connection), connection->since);
}

static const struct connection_hooks connection_hooks = {EVL_PIPE_HOOKS};

static const struct login_hooks login_hooks = {.done = side_on_login_done};

void evl_side_init(struct pipe *side, struct connections *all, struct node *node,
                   const struct request_ops *const ops[REQUEST_KINDS]) {
    evl_connection_init(evl_pipe_connection(side), all, evl_node_index(node), &node->url, &connection_hooks);
    evl_login_init(&side->login, node->pipe.login.credentials, &login_hooks);
    side->login.in_cluster = node->pipe.login.in_cluster;
    evl_pipe_init(side, ops);
}
