-- Included where a lock is broken: what a value is told and compared by. One that is longer than any token is told by
-- its beginning and a digest, which together are longer than any token too: so no two values have the same mark.
local function mark(value)
  return #value <= 128 and value or string.sub(value, 1, 128) .. redis.sha1hex(value)
end
