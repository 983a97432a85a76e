/** Texts between backticks are not matched, and every place is still that of the source. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { sourceOf, spanIn } from '../../src/ast/diagnostics/span.ts'
import type * as Ast from '../../src/ast/nodes/nodes.ts'
import { scan } from '../../src/ast/parse/lexical-scan.ts'
import { parseExpression } from '../../src/ast/parse/parse.ts'
import { parse } from '../../src/schedule/steps/language.ts'
import { property } from '../support/property.ts'
import { refusal } from '../support/refusal.ts'

const codes = fc.array(fc.string({ unit: fc.constantFrom('a', '(', '"', '\n', '/', '$', ' ') }), {
  maxLength: 5,
})
const blanks = fc.string({ unit: fc.constantFrom('x', ' ', '\n', '\t', '// a (\n', '/* ` */', '"a  b"') })

property([codes, blanks])(
  'code, comments and blanks are removed, other text keeps its place',
  (inside, outside) => {
    const text = inside.map((c) => `${outside}\`${c}\``).join('') + outside
    const { condensed } = scan({ name: 't', text })
    const tokens = (t: string) => t.match(/"[^"]*"|[^\s"]+/g)
    expect(tokens(condensed.text)).toEqual(
      tokens(
        text.replace(/`[^`]*`|"[^"]*"|\/\/.*|\/\*.*?\*\//g, (m) =>
          m[0] === '/' ? ' ' : m[0] === '`' ? '``' : m,
        ),
      ),
    )
    expect(condensed.text.replace(/"[^"]*"/g, 's')).not.toMatch(/\s\s/)
    for (let p = 0; p < condensed.text.length; p++)
      if (condensed.text[p] !== ' ') expect(text[condensed.at(p)]).toBe(condensed.text[p])
    expect(condensed.at(condensed.text.length)).toBe(text.length)
    expect(condensed.pieces.join('')).toBe(condensed.text)
  },
)

test('declarations are pieces; braces of imports are not', () => {
  const { pieces } = scan({ name: 't', text: 'import { a } from "b"\nk { { } } // c\nj {}\n' }).condensed
  expect(pieces).toEqual(['import { a } from "b"\nk { { } }', ' j {}', '\n'])
})

const INSTR = `instr add(D: f32[1] in register, S: f32[1] in register) {
  iterate add [i] as S { D[i] += S[i] }
  cuda \`$D[0] += $S[0]; // a ( that nothing closes\`
  wgsl \`$D[0] += $S[0];\`
}
`

test('programs, spans and errors after inline code', () => {
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

test('an expression from a file knows its file and location', () => {
  const file = ' '.repeat(200)
  const within = spanIn({ name: 't', text: file }, 100, 106)
  expect(parseExpression({ name: 't', text: 'a + b' }, within).span).toEqual({
    source: 't',
    start: 100,
    end: 105,
  })
  expect(sourceOf(parseExpression({ name: 't', text: 'a + b' }, within).span)?.text).toBe(file)
  for (const text of ['a + ', 'a + (b', 'a ) b', '1e999 + a'])
    expect(refusal(() => parseExpression({ name: 't', text }, within)).span?.start).toBe(
      100 + refusal(() => parseExpression({ name: 't', text })).span!.start,
    )
})
