-- Takes the lock, or a place in its queue; asked again, looks how things stand and keeps the place.
-- KEYS: lock, queue, fence counter. ARGV: waiter (see grant.lua), token, ttl in ms, 1 if it wants a fence, else 0.
-- 1, or the fence: the token has the lock. Else "TIME AHEAD LEFT": the server's clock in microseconds, how many waiters
-- are ahead, what the holder has left in ms (-1: no expiry).
local found = redis.pcall('GET', KEYS[1])
if type(found) == 'table' then return found end
--@ include grant.lua
local us = clock()
if type(us) == 'table' then return us end
-- It had been granted, and the message is under way or was lost.
if found == ARGV[2] then
  local left = redis.pcall('PTTL', KEYS[1])
  if type(left) == 'table' then return left end
  if left >= 0 and left < tonumber(ARGV[3]) then
    local done = redis.pcall('PEXPIRE', KEYS[1], ARGV[3])
    if type(done) == 'table' then return done end
  end
  return ARGV[4] == '1' and draw(us) or 1
end
local added = redis.pcall('ZADD', KEYS[2], 'NX', string.format('%.0f', us), ARGV[1])
if type(added) == 'table' then return added end
-- The queue outlives the looks of its waiters, and goes by itself when there are none.
local kept = redis.pcall('PEXPIRE', KEYS[2], '60000')
if type(kept) == 'table' then return kept end
if not found then
  local result, winner = grant(ARGV[1], us)
  if winner == ARGV[1] or type(result) == 'table' then return result end
end
local ahead, left = redis.pcall('ZRANK', KEYS[2], ARGV[1]), redis.pcall('PTTL', KEYS[1])
if type(ahead) == 'table' then return ahead end
if type(left) == 'table' then return left end
return string.format('%.0f %d %.0f', us, ahead, left)
