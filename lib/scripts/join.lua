-- Takes the lock, or a place in its queue; asked again, looks how things stand and keeps the place.
-- KEYS: lock, queue, fence counter. ARGV: waiter (see grant.lua), token, ttl in ms, 1 if it wants a fence, else 0; and
-- the clock, if it is brought (see reason.lua).
-- 1, or the fence: the token has the lock. Else "TIME AHEAD LEFT": the server's clock in microseconds (0: it was
-- brought), how many waiters are ahead, and what the holder has left in ms (-1: no expiry, or not asked): asked where
-- none is ahead, and where this found the lock free and granted it to another, who may not come to look either.
local found = redis.pcall('GET', KEYS[1])
if type(found) == 'table' then return found end
local brought = ARGV[5]
--@ include grant.lua
local us = clock(brought)
if type(us) == 'table' then return us end
-- It had been granted, and the message is under way or was lost.
if found == ARGV[2] then
  local left = redis.pcall('PTTL', KEYS[1])
  if type(left) == 'table' then return left end
  if left >= 0 and left < tonumber(ARGV[3]) then
    local done = redis.pcall('PEXPIRE', KEYS[1], ARGV[3])
    if type(done) == 'table' then return done end
  end
  if ARGV[4] == '0' then return 1 end
  local fence = draw(us)
  return type(fence) == 'table' and fence or tonumber(fence)
end
local added = redis.pcall('ZADD', KEYS[2], 'NX', us, ARGV[1])
if type(added) == 'table' then return added end
if not found then
  local winner, fence = grant(ARGV[1], us)
  if type(winner) == 'table' then return winner end
  if winner == ARGV[1] then return fence > 0 and fence or 1 end
end
local ahead, left = redis.pcall('ZRANK', KEYS[2], ARGV[1]), -1
if type(ahead) == 'table' then return ahead end
-- The queue goes by itself when nobody waits. Who waits long looks; of many who wait shortly, those suffice whose
-- token ends in 0.
if added == 0 or ahead == 0 or string.sub(ARGV[2], -1) == '0' then
  local kept = redis.pcall('PEXPIRE', KEYS[2], '@QUEUE_TTL_MS@')
  if type(kept) == 'table' then return kept end
end
if ahead == 0 or not found then left = redis.pcall('PTTL', KEYS[1]) end
if type(left) == 'table' then return left end
return told(us) .. ' ' .. ahead .. ' ' .. left
