/** The library of schedule functions: elaborated, documented, and used by kernels. */
import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import type { ScheduleFunction } from '../../src/ast/nodes/nodes.ts'
import { print } from '../../src/ast/print/print.ts'
import { elaborate } from '../../src/elaborate/index.ts'
import { loadProgram, parse } from '../../src/schedule/steps/language.ts'

const text = (path: string): string => readFileSync(path, 'utf8')
const FILES = readdirSync('kernels/schedules').map((f) => `kernels/schedules/${f}`)
const functionsOf = (path: string): readonly ScheduleFunction[] =>
  parse({ name: path, text: text(path) }).decls.flatMap((d) => (d.kind === 'function' ? [d] : []))
const kernels = readdirSync('kernels').flatMap((f) => (f.endsWith('.spt') ? [text(`kernels/${f}`)] : []))
const library = FILES.map(text).join('\n')
const page = text('docs/reference/steps/library.md')

describe.each(FILES)('%s', (path) => {
  test('is elaborated without errors and formatted', async () => {
    elaborate(await loadProgram(path, (p) => Promise.resolve(text(p))))
    expect(print(parse({ name: path, text: text(path) }))).toBe(text(path))
  })

  test.each(functionsOf(path).map((f) => [f.name.name, f] as const))(
    '%s is used and documented',
    (name, f) => {
      const use = new RegExp(`\\buse ${name}\\(`)
      expect(kernels.some((k) => use.test(k)) || use.test(library)).toBe(true)
      expect(page).toContain(`\`${name}(${f.params.map((p) => p.name.name).join(', ')})\``)
      for (const r of f.results) expect(page).toContain(`\`${r.name}\``)
      expect(f.trivia?.before, 'a comment').toBeDefined()
    },
  )
})
