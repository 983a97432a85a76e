import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import grammar from '../../grammar/spt.ohm-bundle.js'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { isName } from '../../src/ast/nodes/names.ts'
import type { Expr, File } from '../../src/ast/nodes/nodes.ts'
import { literalValue } from '../../src/ast/nodes/nodes.ts'
import { MAX_BRANCHES, MAX_HEIGHT, MAX_NESTING } from '../../src/ast/parse/lexical-scan.ts'
import { print, printExpr } from '../../src/ast/print/print.ts'
import { languagePages } from '../docs/site.ts'
import { costly, runs, scaled } from '../support/cases.ts'
import { file } from './arbitrary.ts'
import { complaint, read } from './support.ts'

const LANGUAGE = languagePages().join('\n')
const EXAMPLES = [...LANGUAGE.matchAll(/^```spt\n(.*?)^```$/gms)].map((m) => m[1]!)
const STEPS = [...LANGUAGE.matchAll(/^\| \[`(\w+)`\]\([^)]*\) \| (`.*?) \| /gm)].flatMap(([, word, forms]) =>
  [...forms!.matchAll(/`([^`]+)`/g)].map(([, form]) => [word!, form!] as const),
)

function exprOf(text: string): Expr {
  const [k] = read(`kernel k() { axis i = dense_fixed(${text}) }`).decls
  const [axis] = k?.kind === 'kernel' ? k.members : []
  if (axis?.kind !== 'axis' || axis.def.kind !== 'dense_fixed') throw new Error('no axis')
  return axis.def.extent
}
/** With all parentheses. */
function grouped(e: Expr): string {
  if (e.kind === 'binary') return `(${grouped(e.a)} ${e.op} ${grouped(e.b)})`
  if (e.kind === 'unary') return `(${e.op} ${grouped(e.x)})`
  return printExpr(e)
}

describe('the language page', () => {
  test.each(EXAMPLES)('%s', (text) => {
    expect(read(text).imports.length + read(text).decls.length).toBeGreaterThan(0)
  })

  test.each(STEPS.filter(([, form]) => !form.includes('…')))('step %s: %s', (word, form) => {
    const [s] = read(`schedule k.s { ${form} }`).decls
    expect(s?.kind === 'schedule' && s.steps.map((x) => (x.kind === 'step' ? x.word : x.kind))).toEqual([
      word,
    ])
  })

  test('is not empty', () => {
    expect(EXAMPLES.length).toBeGreaterThan(4)
    expect(STEPS.length).toBeGreaterThan(16)
  })
})

describe('expressions', () => {
  test.each([
    ['a or b and c', '(a or (b and c))'],
    ['not a < b and c', '((not (a lt b)) and c)'],
    ['a - b - c', '((a sub b) sub c)'],
    ['a + b * c % d', '(a add ((b mul c) mod d))'],
    ['-a * b', '((neg a) mul b)'],
    ['a - -b', '(a sub (neg b))'],
    ['a - 1 < b / 2', '((a sub 1) lt (b div 2))'],
    ['not not a == b', '(not (not (a eq b)))'],
    ['-(a + b)', '(neg (a add b))'],
    ['(a or b) and c', '((a or b) and c)'],
    ['notes + order + android + inform', '(((notes add order) add android) add inform)'],
  ])('%s', (text, expected) => {
    expect(grouped(exprOf(text))).toBe(expected)
  })

  test.each([
    ['1', 1, false],
    ['1.5', 1.5, true],
    ['1e-3', 0.001, true],
    ['2E+2', 200, true],
    ['-inf', Number.NEGATIVE_INFINITY, undefined],
    ['nan', Number.NaN, true],
    ['true', true, undefined],
  ])('literal %s', (text, value, float) => {
    const e = exprOf(text)
    expect(literalValue(e)).toEqual(value)
    if (float !== undefined) expect(e).toMatchObject({ float })
  })
})

describe('spans', () => {
  const inside = (node: unknown, text: string, outer: { start: number; end: number }): number => {
    if (Array.isArray(node)) return node.reduce((n, x) => n + inside(x, text, outer), 0)
    if (typeof node !== 'object' || node === null) return 0
    const { span, name, index } = node as {
      span?: { start: number; end: number }
      name?: unknown
      index?: unknown
    }
    if (!span) return Object.values(node).reduce((n: number, x) => n + inside(x, text, outer), 0)
    expect(span.start).toBeGreaterThanOrEqual(outer.start)
    expect(span.end).toBeLessThanOrEqual(outer.end)
    const slice = text.slice(span.start, span.end)
    expect(slice.trim()).toBe(slice)
    // An element of a list has its index after its name.
    if (typeof name === 'string') expect(index ? slice.slice(0, name.length) : slice).toBe(name)
    const children = Object.entries(node).filter(
      ([key]) => key !== 'span' && key !== 'trivia' && key !== 'lines',
    )
    return children.reduce((n, [, x]) => n + inside(x, text, span), 1)
  }

  test('lie within those of their parents, without white space; that of a name is its text', () => {
    let nodes = 0
    fc.assert(
      fc.property(file, (f) => {
        const text = print(f)
        const again: File = read(text)
        for (const d of [...again.imports, ...again.decls]) nodes += inside(d, text, again.span)
      }),
      { numRuns: runs(100) },
    )
    expect(nodes).toBeGreaterThan(scaled(200))
  })
})

describe('bounds', () => {
  const within = (body: string): string => `kernel k() { axis i = dense_fixed(${body}) }`
  test('deep nesting is accepted up to the limit and rejected beyond, at any depth', () => {
    const nested = (n: number): string => within('('.repeat(n) + 1 + ')'.repeat(n))
    expect(read(nested(MAX_NESTING - 2)).decls).toHaveLength(1)
    for (const n of [MAX_NESTING, 10_000, 100_000])
      expect(complaint(nested(n))).toContain('nested too deeply')
    for (const open of ['a[', 'f(', '{'])
      expect(complaint(within(open.repeat(10_000)))).toContain('nested too deeply')
  })

  test.each(['1 + ', '-', 'not ', '1 < 2 and ', '2 * '])('a chain of %s', (op) => {
    expect(read(within(`${op.repeat(100)}1`)).decls).toHaveLength(1)
    expect(complaint(within(`${op.repeat(3000)}1`))).toContain('nested too deeply')
  })

  test('the tallest expression can be printed and read back', () => {
    const tall = within(`1${' + 1'.repeat(MAX_HEIGHT - 1)}`)
    expect(print(read(print(read(tall))))).toBe(print(read(tall)))
  })

  test('a chain of else if', () => {
    const chain = (n: number): string =>
      `kernel k() { iterate a [] { if (a) {}${' else if (b) {}'.repeat(n)} else { s[] = 1 } } }`
    expect(print(read(chain(20)))).toContain('} else if (b) {}')
    const text = chain(MAX_BRANCHES - 1)
    expect(print(read(print(read(text))))).toBe(print(read(text)))
    expect(complaint(chain(MAX_BRANCHES))).toContain('too many `else if`s')
    expect(complaint(chain(1000))).toContain(`at most ${MAX_BRANCHES} conditions in an`)
  })

  test('a data file is rejected before it is parsed', () => {
    expect(complaint('1 2 3\n'.repeat(100_000))).toContain('if this is a data file')
  })
})

describe('any text at all', () => {
  /** Only an `SptError` whose spans lie in the text may come out. */
  const holds = (text: string): boolean => {
    try {
      read(text)
      return true
    } catch (e) {
      if (!(e instanceof SptError)) throw e
      expect(complaint(text)).toContain('error[parse/')
      for (const { span } of e.diagnostics.flatMap((d) => [d, ...(d.labels ?? [])])) {
        if (!span) continue
        expect(span.start).toBeLessThanOrEqual(span.end)
        expect(span.end).toBeLessThanOrEqual(text.length)
      }
      return false
    }
  }

  test('random characters', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 60 }), (text) => {
        holds(text)
      }),
      { numRuns: costly(150) },
    )
  })

  test('random tokens', () => {
    const token = fc.constantFrom(
      ...(
        'kernel monoid format schedule import k i A ( ) [ ] { } , ; : . -> = == += lse= < + - * / % and or not inf 1 2.5 1e3 ' +
        'let if else iterate as SR axis dense_fixed buffer f32 size in out fill map inverse over split by bind to block.x " // /* */ \n 😀'
      ).split(' '),
    )
    fc.assert(
      fc.property(fc.array(token, { maxLength: 40 }), (tokens) => {
        holds(tokens.join(' '))
      }),
      { numRuns: runs(250) },
    )
  })

  test('programs with a mutation', () => {
    let accepted = 0
    let refused = 0
    fc.assert(
      fc.property(
        fc.constantFrom(...EXAMPLES),
        fc.nat(),
        fc.nat(12),
        fc.oneof(fc.string({ maxLength: 3 }), fc.constantFrom('(', '}', '=', ' ', '\n', '/*', 'x', '-')),
        (text, at, length, insert) => {
          const p = at % text.length
          if (holds(text.slice(0, p) + insert + text.slice(p + length))) accepted++
          else refused++
        },
      ),
      { numRuns: runs(100) },
    )
    expect(accepted).toBeGreaterThan(0)
    expect(refused).toBeGreaterThan(scaled(50))
  })
})

test('isName agrees with the grammar', () => {
  const words = fc.constantFrom(...'let if else iterate as and or not true false inf nan'.split(' '))
  const texts = fc.oneof(
    words,
    fc.tuple(words, fc.constantFrom('_', '1', 'x', '')).map((w) => w.join('')),
    fc.string({ unit: fc.constantFrom(...'aZ_09 -é'), maxLength: 3 }),
  )
  fc.assert(
    fc.property(texts, (text) => {
      expect(isName(text)).toBe(grammar.match(text, 'ident').succeeded())
    }),
    { numRuns: runs(300) },
  )
})
