/* What a server says of itself; see info.h. */
#include "info.h"

#include <stdlib.h>
#include <string.h>

/* Copies the value of a line "field:value"; one that has no room is not said. */
static void info_field(const char *text, const char *field, char *ret, size_t size) {
    const char *line = strstr(text, field);
    size_t len;

    ret[0] = '\0';
    if (!line)
        return;
    line += strlen(field);
    len = strcspn(line, "\r\n");
    if (len < size) {
        memcpy(ret, line, len);
        ret[len] = '\0';
    }
}

/* --- INFO server -------------------------------------------------------------------------------------------------- */

/* One that is nonsense is taken for a start just now. */
static int64_t info_uptime(const char *text) {
    static const int64_t century = INT64_C(100) * 366 * 24 * 3600;
    char seconds[24];
    int64_t uptime;

    info_field(text, "\nuptime_in_seconds:", seconds, sizeof(seconds));
    uptime = strtoll(seconds, NULL, 10);
    if (!seconds[0])
        return -1;
    return uptime < 0 || uptime > century ? 0 : uptime;
}

/* One that is no version, or none of this world, is not said. */
static unsigned info_version(const char *text, const char *field) {
    char version[24], *end;
    unsigned long major, minor = 0;

    info_field(text, field, version, sizeof(version));
    major = strtoul(version, &end, 10);
    if (*end == '.')
        minor = strtoul(end + 1, NULL, 10);
    return major < 1000 ? (unsigned)(major * 100 + (minor < 100 ? minor : 99)) : 0;
}

/* All say which version of Redis they are like: a name of their own comes first. */
static struct info_product info_product(const char *text) {
    static const struct {
        const char *field, *name;
    } products[] = {
        {"\nvalkey_version:", "Valkey"}, {"\ndragonfly_version:", "Dragonfly"}, {"\nkvrocks_version:", "Kvrocks"},
        {"\nredict_version:", "Redict"}, {"\nredis_version:", "Redis"},
    };
    struct info_product product = {"", ""};

    for (size_t i = 0; !product.name[0] && i < sizeof(products) / sizeof(products[0]); i++) {
        if (!strstr(text, products[i].field))
            continue;
        product.name = products[i].name;
        info_field(text, products[i].field, product.version, sizeof(product.version));
    }
    return product;
}

/* A Sentinel knows none of the commands. */
static struct trouble info_refusal(const char *text, const char *mode) {
    static const char garnet[] = "this is Garnet, where others' commands may run amid a script; locks need more";
    static const char sentinel[] = "this is a Sentinel, which has no locks; its URL is redis+sentinel://HOST:PORT/NAME";

    if (strstr(text, "\ngarnet_version:"))
        return (struct trouble){EVLOCK_EUNSUPPORTED, garnet};
    if (strcmp(mode, "sentinel") == 0)
        return (struct trouble){EVLOCK_EUNSUPPORTED, sentinel};
    return evl_no_trouble;
}

#define MODE_SIZE 16

/* Valkey has a name of its own for it. */
static void info_mode(const char *text, char ret[MODE_SIZE]) {
    info_field(text, "\nredis_mode:", ret, MODE_SIZE);
    if (!ret[0])
        info_field(text, "\nserver_mode:", ret, MODE_SIZE);
}

bool evl_info_is_sentinel(const char *text) {
    char mode[MODE_SIZE];

    info_mode(text, mode);
    return strcmp(mode, "sentinel") == 0;
}

void evl_info_server(const char *text, struct info_server *ret) {
    char mode[MODE_SIZE];

    info_field(text, "\nrun_id:", ret->run_id, sizeof(ret->run_id));
    info_mode(text, mode);
    ret->uptime = info_uptime(text);
    ret->redis = info_version(text, "\nredis_version:");
    ret->valkey = info_version(text, "\nvalkey_version:");
    ret->product = info_product(text);
    ret->renews_many = ret->redis >= 700;
    ret->clusters = strcmp(mode, "cluster") == 0;
    ret->refusal = info_refusal(text, mode);
}

/* --- INFO replication --------------------------------------------------------------------------------------------- */

/* One that others write to as well grants what they grant. One that may not be written to may be promoted any moment.
 */
static struct trouble info_refusal_of_role(const char *role) {
    static const char active[] = "this server has other masters beside it (active-replica), and two may grant one lock";
    static const char replica[] = "READONLY this server is a replica; give the address of its primary";

    if (strcmp(role, "active-replica") == 0)
        return (struct trouble){EVLOCK_EUNSUPPORTED, active};
    if (strcmp(role, "slave") == 0 || strcmp(role, "replica") == 0)
        return (struct trouble){EVLOCK_EREFUSED, replica};
    return evl_no_trouble;
}

/* A second history is that of a server whose data it took. */
void evl_info_data(const char *text, struct info_data *ret) {
    static const char none[] = "0000000000000000000000000000000000000000";
    char role[16], second[ID_SIZE], replicas[8], enough[8];

    info_field(text, "\nmaster_replid:", ret->replid, sizeof(ret->replid));
    info_field(text, "\nmaster_replid2:", second, sizeof(second));
    info_field(text, "\nrole:", role, sizeof(role));
    ret->inherited = strcmp(role, "master") != 0 || strcmp(second, none) != 0;
    info_field(text, "\nconnected_slaves:", replicas, sizeof(replicas));
    info_field(text, "\nmin_slaves_good_slaves:", enough, sizeof(enough));
    ret->bare = replicas[0] && strcmp(replicas, "0") != 0 && !enough[0];
    ret->refusal = info_refusal_of_role(role);
}

/* --- The others --------------------------------------------------------------------------------------------------- */

bool evl_info_evicts(const char *text, char ret_policy[POLICY_SIZE]) {
    char limit[24];

    info_field(text, "\nmaxmemory:", limit, sizeof(limit));
    info_field(text, "\nmaxmemory_policy:", ret_policy, POLICY_SIZE);
    return limit[0] && strcmp(limit, "0") != 0 && ret_policy[0] && strcmp(ret_policy, "noeviction") != 0;
}

enum evlock_persistence evl_info_persistence(const char *text) {
    char aof[8];

    info_field(text, "\naof_enabled:", aof, sizeof(aof));
    if (strcmp(aof, "1") == 0)
        return EVLOCK_PERSISTENCE_AOF;
    return strcmp(aof, "0") == 0 ? EVLOCK_PERSISTENCE_NO_AOF : EVLOCK_PERSISTENCE_UNKNOWN;
}

bool evl_info_is_whole(const char *text, char ret_shards[SHARDS_SIZE]) {
    ret_shards[0] = '\0';
    if (strstr(text, "cluster_state:ok"))
        info_field(text, "\ncluster_size:", ret_shards, SHARDS_SIZE);
    return strcmp(ret_shards, "1") == 0;
}

/* Of a word "field=value". */
static int64_t info_number(const char *text, const char *field) {
    const char *word = strstr(text, field);

    return word ? strtoll(word + strlen(field), NULL, 10) : -1;
}

void evl_info_connection(const char *text, int64_t *ret_id, int64_t *ret_age) {
    *ret_id = info_number(text, "id=");
    *ret_age = info_number(text, " age=");
}
