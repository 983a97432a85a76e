import { test } from 'vitest'
import { writeFileSync, readFileSync } from 'node:fs'
import { parseProgram } from '../../src/api/program.ts'
test('show', () => {
  const t = readFileSync(new URL('./live-try.test.ts', import.meta.url), 'utf8')
  const F = t.match(/const F = `([^`]*)`/)![1]!, K = t.match(/const K = `([^`]*)`/)![1]!
  const k = parseProgram(`${F}${K}schedule mm.s { A as panels(4, 2) live in place }`).kernel().schedule('s')
  writeFileSync('/tmp/live-show.txt', k.show(1) + '\n' + k.show(2) + '\n' + k.trace.join('\n') + JSON.stringify(k.toJSON()))
})
