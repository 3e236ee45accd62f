-- Included by the scripts that know the queue. KEYS: lock, queue, fence counter.
-- A waiter is "CHANNEL TICKET TTL FENCED TOKEN": where its client listens, what tells it from that client's others, its
-- ttl in ms, 1 if it wants a fence, its token. Its score is the server's clock, in microseconds, when it came. A ticket
-- that ends in "+SPARE" asks for so many fences besides.

-- Gives the lock, to which nobody else has a right now, to the first waiter whose client listens, and tells it by
-- "TICKET TIME FENCE", or "TICKET TIME FENCE SPARE" (see draw.lua); those who are gone leave the queue. `asker` is the
-- waiter that asks for itself: it is here, and needs no message. `us`: the clock, if it is known, and `brought`, if it
-- is brought (see clock.lua).
-- The waiter and what it drew, or "0"; nil: there is none; or an error: then the lock is free, or as it was, and the
-- waiter that was to have it comes back when it looks.
-- It is all in one: a function more, or what it takes from outside, would cost a handover a hundredth each.
local function grant(asker, us, brought)
  local call = redis.pcall
  while true do
    local first = call('ZPOPMIN', KEYS[2])
    if first.err then return first end
    local waiter = first[1]
    if not waiter then return nil end
    local channel, ticket, ttl, fenced, at = string.match(waiter, '^([^ ]+) ([^ ]+) (%d+) ([01]) ().')
    local here = waiter == asker
    if at and not here then
      -- PUBLISH would count those who listen to patterns, too.
      local count = call('PUBSUB', 'NUMSUB', channel)
      if count.err then return count end
      here = count[2] > 0
    end
    if here then
      --@ include clock.lua
      local fence = '0'
      if fenced == '1' then
        --@ include draw.lua
      end
      local set = call('SET', KEYS[1], string.sub(waiter, at), 'PX', ttl)
      if set.err then return set end
      if waiter == asker then return waiter, fence end
      -- A clock that was brought says nothing of when this was: by TIME 0 the waiter is to look.
      local heard = call('PUBLISH', channel, ticket .. ' ' .. (brought and '0' or us) .. ' ' .. fence)
      if type(heard) == 'number' then return waiter, fence end
      redis.call('DEL', KEYS[1])
      return heard
    end
  end
end
