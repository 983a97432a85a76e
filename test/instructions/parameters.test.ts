/** Memories and instructions with parameters: an instance is what would have been written by hand. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseProgram, readProgram } from '../../src/api/programs/program.ts'
import { instructionTest } from '../../src/node.ts'
import { runs } from '../support/cases.ts'
import { diagnosticOf, refusal } from '../support/refusal.ts'

const BYTES = { f16: 2, bf16: 2, f32: 4 } as const
type Type = keyof typeof BYTES

const FAMILY = `
memory rows(t: f16 or bf16 or f32, n): t[8, n] in register of 8 threads {
  require n % 8 == 0 and n <= 64
  element (lane, slot) -> (lane, slot)
}
memory turned(t: f16 or bf16 or f32, n): t[8, n] in shared aligned 8 * n * bytes(t) {
  require n % 8 == 0
  address (i, j) -> i * n + (j / 8 + i / 2) % (n / 8) * 8 + j % 8
}
instr load(t: f16 or bf16 or f32, n)(
  R: t[8, n] in rows(t, n),
  S: t[8, n] in turned(t, n) or turned(t, n) aligned 16
) by 8 threads {
  require n != 40
  examples (f16, 16), (f32, 8)
  iterate copy [i, j] as SS { R[i, j] = S[i, j] }
  cuda from 8.0 \`{ load.n$(n).$(t)x2.$t {$(for k from 0 to n - 1: $R[k])}
    $[for s from 0 to n / 8 - 1: step_$s($S.shared(lane, 8 * s), %$(n / 2 + s));] }\`
}`

/** The same without parameters. */
function byHand(t: Type, n: number): string {
  const bytes = BYTES[t]
  const slots = Array.from({ length: n }, (_, k) => `$R[${k}]`).join(', ')
  const steps = Array.from(
    { length: n / 8 },
    (_, s) => `step_${s}($S.shared(lane, ${8 * s}), %${n / 2 + s});`,
  )
  return `
memory rows: ${t}[8, ${n}] in register of 8 threads {
  element (lane, slot) -> (lane, slot)
}
memory turned: ${t}[8, ${n}] in shared aligned ${8 * n * bytes} {
  address (i, j) -> i * ${n} + (j / 8 + i / 2) % ${n / 8} * 8 + j % 8
}
instr load(R: ${t}[8, ${n}] in rows, S: ${t}[8, ${n}] in turned or turned aligned 16) by 8 threads {
  iterate copy [i, j] as SS { R[i, j] = S[i, j] }
  cuda from 8.0 \`{ load.n${n}.${t}x2.${t} {${slots}}
    ${steps.join(' ')} }\`
}`
}

/** Without names and places, which differ. */
const bare = (x: unknown): unknown =>
  JSON.parse(
    JSON.stringify(x, (key, value: unknown) => (key === 'span' || key === 'name' ? undefined : value)),
  )

const COPY = (t: Type, n: number | string) => `
kernel copy(m: size) {
  axis i = dense_fixed(m)
  axis j = dense_fixed(64)
  buffer X: ${t}[i, j] in
  buffer Y: ${t}[i, j] out
  iterate copy [i, j] as SS { Y[i, j] = X[i, j] }
}
schedule copy.tiles(${typeof n === 'string' ? `${n}, ` : ''}rows = 8) {
  require m % rows == 0
  tile (i, j) by (rows, ${n}) -> (io, jo, ii, ji)
  bind io to block.x`

const USED = `
  cache_read X at io in TURNED -> Xs
  cache_read Xs at jo in ROWS -> Xr
  tensorize Xr.ii with LOAD
}`
const used = (turned: string, rows: string, load: string): string =>
  USED.replace('TURNED', turned).replace('ROWS', rows).replace('LOAD', load)

const types = fc.constantFrom<Type[]>('f16', 'bf16', 'f32')
const widths = fc.constantFrom(8, 16, 32, 64)

describe('an instance', () => {
  test('equals the hand-written declaration', () => {
    fc.assert(
      fc.property(types, widths, (t, n) => {
        const text = FAMILY.replace('(f32, 8)', `(${t}, ${n})`)
        const instance = parseProgram(text).instructions.get(`load(${t}, ${n})`)!
        const hand = parseProgram(byHand(t, n))
        expect(instance.name).toBe(`load(${t}, ${n})`)
        expect(instance.operands[0]!.memory!.name).toBe(`rows(${t}, ${n})`)
        expect(bare(instance)).toEqual(bare(hand.instructions.get('load')))
      }),
      { numRuns: runs(6) },
    )
  })

  test.each(['f16', 'bf16'])('converts values to a type parameter: %s', (t) => {
    const declared = (params: string, name: string, type: string): string => `
instr ${name}${params}(D: ${type}[8] in global, S: f32[8] in global) {
  ${params ? `examples (${t})` : ''}
  iterate copy [i] as S { D[i] = ${type}(S[i]) }
  cuda \`narrow($D.at(0), $S.at(0));\`
}`
    const family = parseProgram(declared('(t: f16 or bf16)', 'narrow', 't')).instructions.get(`narrow(${t})`)
    expect(bare(family)).toEqual(bare(parseProgram(declared('', 'narrow', t)).instructions.get('narrow')))
  })

  test('has arguments known at scheduling: the generated code is equal', () => {
    fc.assert(
      fc.property(types, widths, (t, n) => {
        const family = parseProgram(
          FAMILY +
            COPY(t, 'cols') +
            used(`turned(${t}, cols)`, `rows(${t}, rows * cols / 8)`, `load(${t}, cols)`),
        )
        const hand = parseProgram(byHand(t, n) + COPY(t, n) + used('turned', 'rows', 'load'))
        const [a, b] = [family.kernel().schedule('tiles', n), hand.kernel().schedule('tiles')]
        expect(a.emit('cuda')[0]!.text).toBe(b.emit('cuda')[0]!.text)
        expect(a.trace).toContain(`tensorize Xr.ii with load(${t}, ${n})`)
        expect(a.trace).toContain(`cache_read X at io in turned(${t}, ${n}) -> Xs`)
      }),
      { numRuns: runs(6) },
    )
  })

  test('is accepted as source text in TypeScript', () => {
    const text = FAMILY + COPY('f16', 16)
    const plain = parseProgram(`${text}\n}`)
    const k = plain
      .kernel()
      .schedule('tiles')
      .cacheRead('X', 'io', 'turned(f16, 16)', 'Xs')
      .cacheRead('Xs', 'jo', 'rows(f16, 2 * 8)', 'Xr')
      .tensorize('Xr.ii', 'load(f16, 16)')
    const written = parseProgram(text + used('turned(f16, 16)', 'rows(f16, 16)', 'load(f16, 16)'))
    expect(k.emit('cuda')).toEqual(written.kernel().schedule('tiles').emit('cuda'))
    const codes = [
      'load(f16, 12)',
      'load(f64, 8)',
      'load(f16)',
      'load',
      'laod(f16, 8)',
      'load(f16, m)',
      'load(',
    ]
    expect(codes.map((c) => diagnosticOf(() => k.tensorize('ii', c))?.code)).toEqual([
      'check/instance',
      'check/argument-type',
      'check/arguments',
      'check/arguments',
      'api/unknown-instruction',
      'check/constant',
      'parse/unclosed',
    ])
  })

  test('has a test of its own', () => {
    const load = parseProgram(FAMILY).families.instructions.get('load')!.instantiate(['bf16', 32])
    expect(instructionTest(load).kernel.compilation.loops.name).toBe('test')
    expect([...parseProgram(FAMILY).instructions.keys()]).toEqual(['load(f16, 16)', 'load(f32, 8)'])
  })

  test('is imported under another name', async () => {
    const files: Record<string, string> = {
      'main.spt': `import { turned as swapped, rows as held, load as fetch } from "tiles.spt"
        ${COPY('f16', 16)}${used('swapped(f16, 16)', 'held(f16, 16)', 'fetch(f16, 16)')}`,
      'tiles.spt': FAMILY,
    }
    const read = async (path: string) => files[path]!
    const program = await readProgram('main.spt', { files: read, imports: read })
    expect([...program.instructions.keys()]).toEqual(['fetch(f16, 16)', 'fetch(f32, 8)'])
    const written = parseProgram(
      FAMILY + COPY('f16', 16) + used('turned(f16, 16)', 'rows(f16, 16)', 'load(f16, 16)'),
    )
    const text = (p: typeof program): string => p.kernel().schedule('tiles').emit('cuda')[0]!.text
    expect(text(program)).toBe(text(written))
  })
})

describe('arguments of a schedule', () => {
  const program = parseProgram(
    FAMILY + COPY('f16', 'cols') + used('turned(f16, cols)', 'rows(f16, cols)', 'load(f16, cols)'),
  )

  test('that violate a condition: the use and the condition are shown', () => {
    const { code, message, span, labels } = refusal(() => program.kernel().schedule('tiles', 12))
    expect([code, message]).toEqual(['check/instance', 'there is no turned(f16, 12), where cols = 12'])
    const text = program.sources.get(span!.source)!.text
    expect(text.slice(span!.start, span!.end)).toBe('turned(f16, cols)')
    expect(labels!.map((l) => text.slice(l.span.start, l.span.end))).toEqual(['n % 8 == 0'])
  })

  test('are rejected exactly by the declared condition', () => {
    expect(diagnosticOf(() => program.kernel().schedule('tiles', 40))?.message).toBe(
      'there is no load(f16, 40), where cols = 40',
    )
    expect(diagnosticOf(() => program.kernel().schedule('tiles', 32))).toBeUndefined()
  })
})

// Texts --------------------------------------------------------------------------------------------------------

/** A text in which names are numbers, and what it stands for. */
type Piece =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'number'; readonly by: number; readonly plus: number }
  | { readonly kind: 'slot' }
  | {
      readonly kind: 'each'
      readonly from: number
      readonly to: number
      readonly comma: boolean
      readonly inside: readonly Piece[]
    }

const { text: template } = fc.letrec<{ text: readonly Piece[]; piece: Piece }>((tie) => ({
  text: fc.array(tie('piece'), { maxLength: 4 }),
  piece: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    fc.stringMatching(/^[a-z%;,"<>.=]{1,4}( [a-z]\(1, [{[]?)?$/).map(
      (t): Piece => ({
        kind: 'text',
        text: t.endsWith('{') ? `${t}})` : t.endsWith('[') ? `${t}])` : t.includes('(') ? `${t})` : t,
      }),
    ),
    fc.record({ by: fc.nat(3), plus: fc.nat(9) }).map((n): Piece => ({ kind: 'number', ...n })),
    fc.constant<Piece>({ kind: 'slot' }),
    fc
      .record({ from: fc.nat(3), to: fc.nat(3), comma: fc.boolean(), inside: tie('text') })
      .map((e): Piece => ({ kind: 'each', ...e })),
  ),
}))

/** As it is declared; `depth` repeats are around. */
const declared = (pieces: readonly Piece[], depth: number): string =>
  pieces.map((p) => declaredPiece(p, depth)).join('')

function declaredPiece(p: Piece, depth: number): string {
  const name = depth > 0 ? `k${depth}` : 'n'
  switch (p.kind) {
    case 'text':
      return p.text
    case 'number':
      return p.by === 1 && p.plus === 0 ? `$${name}.` : `$(${p.by} * ${name} + ${p.plus})`
    case 'slot':
      return `$R[${name} % 4]`
    case 'each': {
      const [open, close] = p.comma ? '()' : '[]'
      const head = `for k${depth + 1} from ${p.from} to n - ${9 - p.to}`
      return `$${open}${head}:\n  <${declared(p.inside, depth + 1)}> ${close}`
    }
  }
}

const meant = (pieces: readonly Piece[], value: number): string =>
  pieces.map((p) => meantPiece(p, value)).join('')

function meantPiece(p: Piece, value: number): string {
  switch (p.kind) {
    case 'text':
      return p.text
    case 'number':
      return p.by === 1 && p.plus === 0 ? `${value}.` : String(p.by * value + p.plus)
    case 'slot':
      return `R[${value % 4}]`
    case 'each': {
      const length = Math.max(0, p.to - p.from + 1)
      const each = Array.from({ length }, (_, k) => `<${meant(p.inside, p.from + k)}>`)
      return each.join(p.comma ? ', ' : ' ')
    }
  }
}

test('a repeated implementation is expanded', () => {
  fc.assert(
    fc.property(template, (pieces) => {
      const program = parseProgram(`instr f(n)(R: i32[4] in register, S: i32[4] in global) {
        examples (9)
        iterate copy [i] as S { R[i] = S[i] }
        js \`begin ${declared(pieces, 0)} end\`
      }`)
      const text = program.instructions.get('f(9)')!.texts[0]!.pieces
      const shown = text.map((p) => {
        if (typeof p === 'string') return p
        const [slot] = p.kind === 'operand' ? p.args : []
        return slot?.kind === 'const' ? `R[${slot.value}]` : '?'
      })
      expect(shown.join('')).toBe(`begin ${meant(pieces, 9)} end`)
      // No two strings side by side: what is written out is what would have been written.
      expect(text.some((p, k) => typeof p === 'string' && typeof text[k + 1] === 'string')).toBe(false)
    }),
  )
})
