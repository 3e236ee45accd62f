-- Included by the scripts that know the queue. KEYS: lock, queue, fence counter.
-- A waiter is "CHANNEL TICKET TTL FENCED TOKEN": where its client listens, what tells it from that client's others, its
-- ttl in ms, 1 if it wants a fence, its token. Its score is the server's clock when it came.
--@ include fence.lua

-- The server's clock in microseconds, or an error.
local function clock()
  local time = redis.pcall('TIME')
  return time.err and time or tonumber(time[1]) * 1000000 + tonumber(time[2])
end

-- Draws a fence, or gives an error.
local function draw(us)
  local fence = next_fence(KEYS[3], us, 1)
  if type(fence) == 'table' then return fence end
  local kept = redis.pcall('SET', KEYS[3], string.format('%.0f', fence), 'PX', '604800000')
  return kept.err and kept or fence
end

-- Gives the lock, to which nobody else has a right now, to a waiter, and tells it unless it asks for itself.
-- Its fence, or 1. On an error the lock is free, or as it was.
local function give(waiter, asks, channel, ticket, ttl, fenced, token, us)
  local fence = fenced == '1' and draw(us) or 1
  if type(fence) == 'table' then return fence end
  local set = redis.pcall('SET', KEYS[1], token, 'PX', ttl)
  if set.err then return set end
  local told = asks or redis.pcall('PUBLISH', channel, string.format('%s %.0f %.0f', ticket, us, fence))
  if type(told) == 'table' then
    redis.call('DEL', KEYS[1])
    return told
  end
  redis.call('ZREM', KEYS[2], waiter)
  return fence
end

-- Grants to the first waiter whose client listens; those who are gone leave the queue. `asker` is the waiter that asks
-- for itself, and so is here.
-- What give() says, and to whom it was given; nil: there is nobody; or an error.
local function grant(asker, us)
  while true do
    local first = redis.pcall('ZRANGE', KEYS[2], 0, 0)
    if first.err then return first end
    local waiter = first[1]
    if not waiter then return nil end
    local channel, ticket, ttl, fenced, token = string.match(waiter, '^(%S+) (%S+) (%d+) ([01]) (.+)$')
    local here = waiter == asker
    if token and not here then
      -- PUBLISH would count those who listen to patterns, too.
      local count = redis.pcall('PUBSUB', 'NUMSUB', channel)
      if count.err then return count end
      here = count[2] > 0
    end
    if here then return give(waiter, waiter == asker, channel, ticket, ttl, fenced, token, us), waiter end
    redis.call('ZREM', KEYS[2], waiter)
  end
end
