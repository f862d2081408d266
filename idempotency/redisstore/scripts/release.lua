if absent then
  return 'ok'
end
if not held then
  return 'lost'
end
redis.call('DEL', KEYS[1])
return 'ok'
