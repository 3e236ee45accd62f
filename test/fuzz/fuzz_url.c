/*
 * URLs, as arbitrary text: what is taken means the same when it is written down again, and what is refused leaves
 * nothing behind, and no part of itself in an error text.
 */
#include "input.h"

#include <evlock/evlock.h>

#include "../unit/counted.h"
#include "url.h"

/* Appends with every byte that could mean something else as %XX. */
static char *escape(char *to, const char *text) {
    for (; *text; text++)
        to += sprintf(to, strchr("abcXYZ019", *text) ? "%c" : "%%%02x", (unsigned char)*text);
    return to;
}

static char *write_address(char *to, const char *host, int port, bool literal) {
    bool bracketed = literal && strchr(host, ':');

    to += sprintf(to, "%s", bracketed ? "[" : "");
    to = escape(to, host);
    return to + sprintf(to, "%s:%d", bracketed ? "]" : "", port);
}

static void write_down(char *to, const struct url *url) {
    static const char *const kinds[] = {"", "+sentinel", "+cluster"};

    if (url->path) {
        to += sprintf(to, "unix://");
        for (const char *at = url->path; *at; at++)
            to += sprintf(to, *at == '/' ? "/" : "%%%02x", (unsigned char)*at);
        sprintf(to, "?db=%d", url->db);
        return;
    }
    to += sprintf(to, "redis%s%s://", url->tls ? "s" : "", kinds[url->kind]);
    if (url->password) {
        if (url->user)
            to = escape(to, url->user);
        to = escape(to + sprintf(to, ":"), url->password);
        to += sprintf(to, "@");
    }
    to = write_address(to, url->host, url->port, url->literal);
    for (unsigned i = 0; i < url->other_count; i++) {
        *to++ = ',';
        to = write_address(to, url->others[i].host, url->others[i].port, url->others[i].literal);
    }
    if (url->master)
        to = escape(to + sprintf(to, "/"), url->master);
    if (url->kind != URL_CLUSTER)
        sprintf(to, "/%d", url->db);
}

static void check_same_text(const char *one, const char *other) {
    check(!one == !other);
    check(!one || strcmp(one, other) == 0);
}

static void check_same(const struct url *one, const struct url *other) {
    check_same_text(one->host, other->host);
    check_same_text(one->path, other->path);
    check_same_text(one->user, other->user);
    check_same_text(one->password, other->password);
    check_same_text(one->master, other->master);
    check(one->port == other->port && one->db == other->db && one->literal == other->literal);
    check(one->kind == other->kind && one->tls == other->tls && one->other_count == other->other_count);
    for (unsigned i = 0; i < one->other_count; i++) {
        check_same_text(one->others[i].host, other->others[i].host);
        check(one->others[i].port == other->others[i].port && one->others[i].literal == other->others[i].literal);
    }
}

static void check_whole(const struct url *url) {
    check(!url->host != !url->path);
    check(url->db >= 0);
    check(url->path ? (url->path[0] == '/' && !url->password) : (url->port > 0 && url->port < 65536 && url->host[0]));
    check(!url->user || url->password);
    check(!url->master == (url->kind != URL_SENTINELS));
    check(url->kind != URL_SERVER || url->other_count == 0);
    check(url->kind != URL_CLUSTER || url->db == 0);
    check(evl_url_addresses(url) <= EVLOCK_NODES_MAX);
}

static void check_again(struct url *url, size_t size) {
    char *text = malloc(3 * size + 64 + EVLOCK_NODES_MAX * 16);
    struct words words;
    struct url again;

    check(text);
    write_down(text, url);
    check(evl_url_parse(&again, text, strlen(text), &words).status == EVLOCK_OK);
    check_same(url, &again);
    evl_url_free(&again);
    evl_url_forget_login(url);
    check(!url->user && !url->password);
    for (unsigned i = 0; url->host && i < evl_url_addresses(url); i++) {
        check(evl_url_take_address(&again, url, i) == EVLOCK_OK);
        check_same_text(again.host, i ? url->others[i - 1].host : url->host);
        check(again.tls == url->tls && again.db == url->db && !again.others && !again.master);
        evl_url_free(&again);
    }
    free(text);
}

static void check_trouble(struct trouble trouble) {
    check(trouble.status == EVLOCK_EURL || trouble.status == EVLOCK_ESCHEME || trouble.status == EVLOCK_EPATH);
    check(trouble.words[0] && !strstr(trouble.words, "s3cr3t"));
}

static void parse(const char *text, size_t len) {
    struct words words;
    struct url url;
    struct trouble trouble = evl_url_parse(&url, text, len, &words);

    if (trouble.status != EVLOCK_OK) {
        check_trouble(trouble);
        return;
    }
    check_whole(&url);
    check_again(&url, len);
    evl_url_free(&url);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = malloc(size + 1);
    struct url_list list;
    struct trouble trouble;

    check(text);
    memcpy(text, data, size);
    text[size] = '\0';
    counted_begin(NULL);
    trouble = evl_url_list(&list, text);
    if (trouble.status != EVLOCK_OK)
        check_trouble(trouble);
    else
        check(list.count >= 1 && list.count <= EVLOCK_NODES_MAX);
    for (unsigned i = 0; trouble.status == EVLOCK_OK && i < list.count; i++) {
        check(list.urls[i].at >= text && list.urls[i].at + list.urls[i].len <= text + strlen(text));
        parse(list.urls[i].at, list.urls[i].len);
    }
    check(counted_live() == 0);
    free(text);
    return 0;
}
