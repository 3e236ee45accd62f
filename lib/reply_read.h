/*
 * What hiredis read, as the values that the rest of the library works with. Any reply is taken: what no command of
 * evlock is answered with is REPLY_OTHER. It owns nothing and keeps nothing.
 */
#ifndef EVL_REPLY_READ_H
#define EVL_REPLY_READ_H

#include "reply.h"

struct redisReply;

/* An answer. It points into `from`, and into `words` where it has some. What an error quotes is cut off. */
void evl_reply_read(struct redisReply *from, const char *words[REPLY_WORDS_MAX], struct reply *ret);

/* Whether it confirms a subscription. */
bool evl_reply_read_is_confirmation(const struct redisReply *from);

/* The text of a message that was published. NULL: it is none. */
const char *evl_reply_read_message(const struct redisReply *from);

#endif
