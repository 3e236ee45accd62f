-- Takes the lock, or a place in its queue; asked again, looks how things stand and keeps the place.
-- KEYS: lock, queue, fence counter. ARGV: waiter (see grant.lua), token; and the clock, if it is brought (see
-- clock.lua).
-- 1, or the fence, or "FENCE SPARE" (see draw.lua): the token has the lock. Else "TIME AHEAD LEFT": the server's clock
-- in microseconds (0: it was brought), how many waiters are ahead, and what the holder has left in ms (-1: no expiry,
-- or not asked): asked where none is ahead, and where this found the lock free and granted it to another, who may not
-- come to look either.
local call, waiter, token, brought = redis.pcall, ARGV[1], ARGV[2], ARGV[3]
local found = call('GET', KEYS[1])
if type(found) == 'table' then return found end
local us = brought
--@ include clock.lua
-- It had been granted, and the message is under way or was lost.
if found == token then
  local ticket, ttl, fenced = string.match(waiter, '^%S+ (%S+) (%d+) ([01]) ')
  local left = call('PTTL', KEYS[1])
  if type(left) == 'table' then return left end
  if left >= 0 and left < tonumber(ttl) then
    local done = call('PEXPIRE', KEYS[1], ttl)
    if type(done) == 'table' then return done end
  end
  if fenced == '0' then return 1 end
  local fence
  --@ include draw.lua
  return tonumber(fence) or fence
end
local added = call('ZADD', KEYS[2], 'NX', us, waiter)
if type(added) == 'table' then return added end
if not found then
  --@ include grant.lua
  local winner, fence = grant(waiter, us, brought)
  if type(winner) == 'table' then return winner end
  if winner == waiter then return fence == '0' and 1 or tonumber(fence) or fence end
end
local ahead, left = call('ZRANK', KEYS[2], waiter), '-1'
if type(ahead) == 'table' then return ahead end
-- The queue goes by itself when nobody waits. Who waits long looks; of many who wait shortly, those suffice whose
-- token ends in 0.
if added == 0 or ahead == 0 or string.sub(token, -1) == '0' then
  local kept = call('PEXPIRE', KEYS[2], '@QUEUE_TTL_MS@')
  if type(kept) == 'table' then return kept end
end
if ahead == 0 or not found then left = call('PTTL', KEYS[1]) end
if type(left) == 'table' then return left end
return (brought and '0' or us) .. string.format(' %d ', ahead) .. left
