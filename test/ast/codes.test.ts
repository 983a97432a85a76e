/** Texts between backticks are not matched, and every place is still that of the source. */
import { fc, test as law } from '@fast-check/vitest'
import { expect, test } from 'vitest'
import { withoutCodes } from '../../src/ast/blank-backticks.ts'
import { scan } from '../../src/ast/lexical-scan.ts'
import type * as Ast from '../../src/ast/nodes.ts'
import { parseExpression } from '../../src/ast/parse.ts'
import { parse } from '../../src/schedule/language.ts'
import { refusal } from '../support/refusal.ts'

const codes = fc.array(fc.string({ unit: fc.constantFrom('a', '(', '"', '\n', '/', '$', ' ') }), {
  maxLength: 5,
})

law.prop([codes, fc.string({ unit: fc.constantFrom('x', ' ', '\n') })])(
  'what is left is where it was',
  (inside, outside) => {
    const text = inside.map((c) => `${outside}\`${c}\``).join('') + outside
    const short = withoutCodes(text, scan({ name: 't', text }).codes)
    expect(short.text).toBe(inside.map(() => `${outside}\`\``).join('') + outside)
    for (let p = 0; p < short.text.length; p++) expect(text[short.at(p)]).toBe(short.text[p])
    expect(short.at(short.text.length)).toBe(text.length)
  },
)

const INSTR = `instr add(D: f32[1] in register, S: f32[1] in register) {
  iterate add [i] as S { D[i] += S[i] }
  cuda \`$D[0] += $S[0]; // a ( that nothing closes\`
  wgsl \`$D[0] += $S[0];\`
}
`

test('texts, spans and errors after them', () => {
  const [instr] = parse({ name: 't', text: INSTR }).decls as readonly Ast.Instr[]
  for (const t of instr!.items.filter((x): x is Ast.InstrText => 'code' in x)) {
    expect(t.code.name).toContain('+= $S[0];')
    expect(INSTR.slice(t.code.span.start, t.code.span.end)).toBe(t.code.name)
  }
  expect(instr!.span).toEqual({ source: 't', start: 0, end: INSTR.length - 1 })
  const wrong = `${INSTR}instr add 5`
  const error = refusal(() => parse({ name: 't', text: wrong }))
  expect(error.span?.start).toBe(wrong.length - 1)
})

test('an expression out of a file says where in the file it is', () => {
  expect(parseExpression({ name: 't', text: 'a + b' }, 100).span).toEqual({
    source: 't',
    start: 100,
    end: 105,
  })
  for (const text of ['a + ', 'a + (b', 'a ) b', '1e999 + a'])
    expect(refusal(() => parseExpression({ name: 't', text }, 100)).span?.start).toBe(
      100 + refusal(() => parseExpression({ name: 't', text })).span!.start,
    )
})
