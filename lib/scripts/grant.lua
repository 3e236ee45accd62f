-- Included by the scripts that know the queue. KEYS: lock, queue, fence counter. `brought`: see reason.lua.
-- A waiter is "CHANNEL TICKET TTL FENCED TOKEN": where its client listens, what tells it from that client's others, its
-- ttl in ms, 1 if it wants a fence, its token. Its score is the server's clock, in microseconds, when it came.
--@ include fence.lua

-- The clock as waiters are told it: one that was brought says nothing of when this was.
local function told(us)
  return brought and '0' or us
end

-- Draws a fence, as text; or gives an error.
local function draw(us)
  local fence = next_fence(KEYS[3], tonumber(us), 1)
  if type(fence) == 'table' then return fence end
  local text = string.format('%.0f', fence)
  local kept = redis.pcall('SET', KEYS[3], text, 'PX', '@FENCE_TTL_MS@')
  return kept.err and kept or text
end

-- Whether a waiter's client listens. PUBLISH would count those who listen to patterns, too.
local function listens(channel)
  local count = redis.pcall('PUBSUB', 'NUMSUB', channel)
  return count.err and count or count[2] > 0
end

-- Gives the lock, to which nobody else has a right now, to the first waiter whose client listens, and tells it by
-- "TICKET TIME FENCE" (TIME 0: it is to look); those who are gone leave the queue. `asker` is the waiter that asks for
-- itself: it is here, and needs no message.
-- The waiter and its fence, or 0; nil: there is none; or an error: then the lock is free, or as it was, and the waiter
-- that was to have it comes back when it looks.
local function grant(asker, us)
  while true do
    local first = redis.pcall('ZPOPMIN', KEYS[2])
    if first.err then return first end
    local waiter = first[1]
    if not waiter then return nil end
    local channel, ticket, ttl, fenced, token = string.match(waiter, '^([^ ]+) ([^ ]+) (%d+) ([01]) (.+)$')
    local here = waiter == asker or (token and listens(channel))
    if type(here) == 'table' then return here end
    if here then
      us = us or clock(brought)
      if type(us) == 'table' then return us end
      local fence = fenced == '1' and draw(us) or '0'
      if type(fence) == 'table' then return fence end
      local set = redis.pcall('SET', KEYS[1], token, 'PX', ttl)
      if set.err then return set end
      if waiter == asker then return waiter, tonumber(fence) end
      local heard = redis.pcall('PUBLISH', channel, ticket .. ' ' .. told(us) .. ' ' .. fence)
      if type(heard) == 'number' then return waiter, fence end
      redis.call('DEL', KEYS[1])
      return heard
    end
  end
end
