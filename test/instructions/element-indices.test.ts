/**
 * Operands that are indexed by elements of others: the generated test of such an instruction passes where its text does what its
 * body says, and loops over stored positions match it, with copies of all that the positions could name.
 */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { matchInstr } from '../../src/analysis/instructions/match.ts'
import { Facts } from '../../src/analysis/integers/facts.ts'
import { parseProgram } from '../../src/api/programs/program.ts'
import { runLoops } from '../../src/api/stages/stage-check.ts'
import { InstructionVerifier } from '../../src/instruction-tests/instruction-verify.ts'
import { int } from '../../src/ir/expressions/expr.ts'
import { allocations, loopsOf } from '../../src/ir/statements/definitions.ts'
import type { Buffer } from '../../src/ir/statements/loops.ts'
import { coords, devices, load } from '../../src/node.ts'
import { reference } from '../../src/reference/index.ts'
import { bindInputs } from '../../src/run/bind/index.ts'
import { referenceInputs } from '../../src/run/bind/results/reference-inputs.ts'
import { createCpuDevice } from '../../src/runtime/cpu/device.ts'
import { agreeOnDevice, compare } from '../properties/agree.ts'
import { runs } from '../support/cases.ts'
import { refusal } from '../support/refusal.ts'
import { verdictOf } from './verdict.ts'

interface Drawn {
  readonly groups: number
  /** Of how many in a group how many are kept. */
  readonly of: number
  readonly kept: number
  readonly rows: number
  readonly place: 'global' | 'shared' | 'held'
  readonly transposed: boolean
}
const drawn: fc.Arbitrary<Drawn> = fc
  .record({
    groups: fc.constantFrom(2, 3),
    of: fc.constantFrom(3, 4),
    kept: fc.constantFrom(1, 2),
    rows: fc.constantFrom(2, 3),
    place: fc.constantFrom<Drawn['place']>('global', 'shared', 'held'),
    transposed: fc.boolean(),
  })
  .map((d) => ({ ...d, rows: d.place === 'held' ? 4 : d.rows }))

/** Rows of kept elements times a vector, whose text takes element `other(m, k)` of a group for the one that m, the k-th, says. */
function product(d: Drawn, other: (m: string, k: number) => string): string {
  const { groups, of, kept, rows, place, transposed } = d
  const [n, all] = [groups * kept, groups * of]
  const held = place === 'held'
  const at = (i: string, k: string): string => (transposed ? `${k}, ${i}` : `${i}, ${k}`)
  const k = kept === 1 ? 'g' : `${kept} * g + q`
  const memories = `
memory rows: i32[${at('4', `${n}`)}] in register of 4 threads { element (lane, slot) -> (${at('lane', 'slot')}) }
memory vector: i32[${all}] in register of 4 threads replicated { element (lane, slot) -> (slot) }
memory sums: i32[4] in register of 4 threads { element (lane, slot) -> (lane) }`
  const terms = Array.from({ length: rows * n }, (_, e) => {
    const [i, x] = [Math.floor(e / n), e % n]
    const [s, m] = ['S', 'M'].map((o) => `$${o}[$${o}.index(${at(`${i}`, `${x}`)})]`)
    return `$D[${i}] += ${s} * $T[$T.index(${Math.floor(x / kept) * of}) + ${other(m!, x % kept)}];`
  })
  const own = Array.from({ length: n }, (_, x) => {
    const choice = Array.from({ length: of }, (_, y) => `$T[${Math.floor(x / kept) * of + y}]`)
    return `$D[0] += $S[${x}] * [${choice.join(', ')}][${other(`$M[${x}]`, x % kept)}];`
  })
  const [D, S, T] = held ? ['sums', 'rows', 'vector'] : ['register', place, place]
  return `${held ? memories : ''}
instr pick(D: i32[${rows}] in ${D}, S: i32[${at(`${rows}`, `${n}`)}] in ${S}, M: i32[${at(`${rows}`, `${n}`)}] in ${S}, T: i32[${all}] in ${T})${held ? ' by 4 threads' : ''} {
  iterate add [i, g${kept > 1 ? ', q' : ''}] as SR${kept > 1 ? 'R' : ''} {
    D[i] += S[${at('i', k)}] * T[${of} * g + M[${at('i', k)}]]
  }
  js \`${(held ? own : terms).join(' ')}\`
}`
}

test('an implementation that follows index elements passes, and one that does not is wrong', async () => {
  const js = new InstructionVerifier(() => devices.cpu())
  const verdict = async (text: string): Promise<string> => {
    const { kind, why } = await verdictOf(js, text)
    return kind === 'right' ? kind : `${kind} ${why.join()}`
  }
  await fc.assert(
    fc.asyncProperty(drawn, async (d) => {
      expect(await verdict(product(d, (m) => m))).toBe('right')
      expect(await verdict(product(d, (_, k) => `${k % d.of}`))).toMatch(/^wrong/)
      expect(await verdict(product(d, (m) => `(${m} + 1) % ${d.of}`))).toMatch(/^wrong/)
    }),
    { numRuns: runs(5) },
  )
  await js[Symbol.asyncDispose]()
})

test('neighbouring indices ascend if that is required', async () => {
  const js = new InstructionVerifier(() => devices.cpu())
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(' ascending 2', ''),
      fc.constantFrom('global', 'shared'),
      fc.integer({ min: 3, max: 5 }),
      async (asked, place, of) => {
        // The lesser of two first, whichever it is.
        const text =
          `instr pick(D: i32[4] in global, M: i32[4] in ${place}${asked}, S: i32[${2 * of}] in ${place}) {
  iterate each [g, q] as SS { D[2 * g + q] = S[${of} * g + M[2 * g + q]] }
  js \`$[for g from 0 to 1: $[for q from 0 to 1:
    $D[$D.index(2 * g + q)] = $S[$S.index(${of} * g) + Math.$(q)($M[$M.index(2 * g)], $M[$M.index(2 * g + 1)])];]]\`
}`.replaceAll('Math.$(q)(', '[Math.min, Math.max][$q](')
        const { kind, why } = await verdictOf(js, text)
        expect([kind, why]).toEqual(asked ? ['right', []] : ['wrong', expect.anything()])
      },
    ),
    { numRuns: runs(3) },
  )
  await js[Symbol.asyncDispose]()
})

const PICK = `
instr pick(C: i32[2, 3] in register, A: i32[2, 8] in shared, M: i32[2, 8] in shared, B: i32[16, 3] in shared) {
  iterate multiply [i, j, g, q] as SSRR { C[i, j] += A[i, 2 * g + q] * B[4 * g + M[i, 2 * g + q], j] }
  js \`$[for i from 0 to 1: $[for j from 0 to 2: $[for k from 0 to 7:
    $C[3 * i + j] += $A[$A.index(i, k)] * $B[$B.index(k / 2 * 4, j) + 3 * $M[$M.index(i, k)]];]]]\`
}`
const spmm = (steps: string): string => `import "sparsetile/kernels/formats.spt"
${PICK}
kernel spmm(m: size, n: size, d: size) {
  axis i  = dense_fixed(m)
  axis j  = sparse_variable(i, n)
  axis jd = dense_fixed(n)
  axis f  = dense_fixed(d)
  buffer A: i32[i, j]  in
  buffer B: i32[jd, f] in
  buffer C: i32[i, f]  out
  iterate sum [i, j, f] as SRS { C[i, f] += A[i, j] * B[j, f] }
}
schedule spmm.s {
  A as nm_packed(2, 4)
${steps}
}`
const TILES = `
  require m % 2 == 0
  require n % 16 == 0
  require d % 3 == 0
  split io by 2 -> (it, ir)
  split f by 3 -> (fo, fr)
  split go by 4 -> (gt, gr)
  reorder (it, fo, gt, ir, fr, gr, jo)
  cache_write C at fo in register
  cache_read A at gt in shared`

/** The schedule's loops and the cpu's results against the reference, with two of four neighbours, one or none. */
async function agrees(
  text: string,
  sizes: (a: number, b: number, c: number) => readonly number[],
  whole = false,
): Promise<void> {
  const { compilation } = (await load(text)).kernel('spmm').schedule('s')
  const cell = fc.tuple(fc.nat(100), fc.nat(100))
  await fc.assert(
    fc.asyncProperty(
      fc.nat(3),
      fc.nat(3),
      fc.nat(3),
      fc.array(cell, { maxLength: 40 }),
      async (a, b, c, raw) => {
        const [m = 0, n = 0, d = 0] = sizes(a, b, c)
        const cells = new Map<string, number[]>()
        for (const [x, y] of m * n === 0 ? [] : raw) {
          const [i, j] = [x % m, y % n]
          const group = `${i} ${Math.floor(j / 4)}`
          const own = cells.get(group) ?? []
          if (own.length < 2 && !own.includes(i * n + j)) cells.set(group, [...own, i * n + j])
        }
        if (whole)
          for (let g = 0; g < m * n; g += 4) {
            const group = `${Math.floor(g / n)} ${Math.floor((g % n) / 4)}`
            const own = cells.get(group) ?? []
            cells.set(
              group,
              [...own, ...[g, g + 1, g + 2, g + 3].filter((c) => !own.includes(c))].slice(0, 2),
            )
          }
        const at = [...cells.values()].flat().sort((x, y) => x - y)
        const of = (f: (k: number) => number, length: number) => Int32Array.from({ length }, (_, k) => f(k))
        const columns = [of((k) => Math.floor(at[k]! / n), at.length), of((k) => at[k]! % n, at.length)]
        const tensors = {
          A: coords(
            [m, n],
            columns,
            of((k) => 1 + (k % 9), at.length),
          ),
          B: { kind: 'dense', shape: [n, d], values: of((k) => ((k * 7) % 19) - 9, n * d), dtype: 'i32' },
        } as const
        const bound = bindInputs(compilation.kernel, { tensors, params: { m, n, d } })
        const expected = reference(compilation.source, referenceInputs(compilation.source, bound)).buffers
        compare('loops', bound, runLoops(compilation.loops, bound, 'forward'), expected)
        await agreeOnDevice(createCpuDevice(), compilation, bound, expected)
      },
    ),
    { numRuns: runs(10) },
  )
}

describe('loops over stored positions', () => {
  const copies = [
    'cache_read jo_indices at gt in shared -> Ms',
    'cache_read B at gt in shared bounding -> Bs',
  ]
  test.each([copies, copies.toReversed()])('match the instruction: %s, %s', async (first, second) => {
    const text = spmm(`${TILES}\n  ${first}\n  ${second}\n  tensorize sum.ir with pick`)
    await agrees(text, (a, b, c) => [2 * a, 16 * b, 3 * c])
  })

  const FILL = `
instr fill(D: i32[2, 8] in shared, S: i32[2, 8] in global packed 2 aligned 2) {
  iterate copy [i, k] as SS { D[i, k] = S[i, k] }
  js \`$[for i from 0 to 1: $[for k from 0 to 7:
    $D[$D.index(i, k)] = $S[$S.index(i, k) >> 4] >> $S.index(i, k) % 16 * 2 & 3;]]\`
}`
  const copied = `${TILES}
  cache_read jo_indices at gt in shared -> Ms
  cache_read B at gt in shared bounding -> Bs`
  test('packed positions are copied unchanged', async () => {
    const text = FILL + spmm(`${copied}\n  tensorize Ms.ir with fill\n  tensorize sum.ir with pick`)
    await agrees(text.replace(/(.*)(import .*?\n)/s, '$2$1'), (a, b, c) => [2 * a, 16 * b, 3 * c])
  })

  test.each([
    [
      'packed 4 aligned 2',
      'schedule/wrong-type',
      'jo_indices holds coordinates of 2 bits, and operand S of fill is i32 packed 4',
    ],
    [
      'aligned 4',
      'schedule/wrong-type',
      'jo_indices holds coordinates of 2 bits, and operand S of fill is i32',
    ],
    // 8 fields of a row in each 16 columns.
    [
      'packed 2 aligned 4',
      'schedule/not-aligned',
      'operand S needs 16 neighbouring elements of jo_indices aligned to 4 bytes',
    ],
  ])('a copy of what is %s is rejected', async (words, code, message) => {
    const text = FILL.replace('packed 2 aligned 2', words) + spmm(`${copied}\n  tensorize Ms.ir with fill`)
    const program = await load(text.replace(/(.*)(import .*?\n)/s, '$2$1'))
    expect(refusal(() => program.kernel('spmm').schedule('s').compilation.loops)).toMatchObject({
      code,
      message: expect.stringContaining(message),
    })
  })

  test.each([
    [4, 'match'],
    [3, 'match'],
    [5, 'mismatch'],
    [undefined, 'mismatch'],
  ])('elements below %s are a %s', async (end, kind) => {
    const program = await load(spmm(copied))
    const { loops } = program.kernel('spmm').schedule('s').compilation
    const local = allocations(loops.body)
    const below = end === undefined ? undefined : int(end)
    const buffer = (name: string): Buffer => ({ ...local.get(name)!, ...(name === 'Ms' ? { below } : {}) })
    const nest = loopsOf(loops.body).find((l) => l.nest === 'sum' && l.name === 'ir')!
    const match = matchInstr(program.instructions.get('pick')!, nest, {
      buffer,
      facts: new Facts({ sizes: loops.facts }),
    })
    expect(match.kind).toBe(kind)
    if (match.kind === 'mismatch') expect(match.refusal.message).toContain('not known to be below 4')
  })

  test('positions ascend if each holds an element', async () => {
    const ascending = (format: string): string =>
      spmm(`${copied}\n  tensorize sum.ir with pick`)
        .replace('M: i32[2, 8] in shared', 'M: i32[2, 8] in shared ascending 2')
        .replaceAll('nm_packed(2, 4)', format)
        .replace(/import .*\n/, (all) =>
          format.startsWith('nm_exact')
            ? 'import { nm_exact } from "sparsetile/kernels/sparse-tensor-cores.spt"\n'
            : all,
        )
    await agrees(ascending('nm_exact(2, 4)'), (a, b, c) => [2 * a, 16 * b, 3 * c], true)
    const loopsOf = async (text: string): Promise<unknown> => {
      const program = await load(text)
      return refusal(() => program.kernel('spmm').schedule('s').compilation.loops)
    }
    expect(await loopsOf(ascending('nm_packed(2, 4)'))).toMatchObject({
      code: 'schedule/not-ascending',
      message: expect.stringContaining('of Ms nothing says so'),
    })
    // Neighbours are others in a copy that is turned.
    const turned = ascending('nm_exact(2, 4)').replace('in shared -> Ms', 'in shared transposed -> Ms')
    expect(await loopsOf(turned)).toMatchObject({ code: expect.stringMatching(/^schedule/) })
  })

  test('a copy covers the rows that positions can name', async () => {
    const text = spmm(`  split f by 3 -> (fo, fr)
  reorder (io, go, fo, jo, fr)
  cache_read B at fo in shared bounding -> Bs`)
    const stage = (await load(text)).kernel('spmm').schedule('s').show(2)
    expect(stage).toContain('Bs: i32[4, 3] shared')
    expect(stage).toContain('in 0..4  where go * 4 + jo_indices_2 < n')
    await agrees(text, (a, b, c) => [a, 3 * b + c, 2 * c])
  })

  test('an index without a known upper bound is rejected', async () => {
    // Where `nm` pads, positions have the extent.
    const text = spmm(`${TILES}\n  cache_read B at gt in shared bounding`).replaceAll('nm_packed(2', 'nm(2')
    const program = await load(text)
    expect(refusal(() => program.kernel('spmm').schedule('s').compilation.loops)).toMatchObject({
      code: 'schedule/not-bounded',
    })
  })

  const PLAIN = `
instr take(D: i32[4] in global, M: i32[4] in global, S: i32[8] in global) {
  iterate each [i] as S { D[i] = S[M[i]] }
  js \`x\`
}
kernel k() {
  axis i = dense_fixed(4)
  axis s = dense_fixed(8)
  buffer L: i32[i] in
  buffer M: i32[i] in
  buffer X: i32[s] in
  buffer Y: i32[i] out
  iterate move [i] as S { if (M[i] >= 0) { if (M[i] < 8) { Y[i] = X[INDEX] } } }
}
schedule k.s { tensorize i with take }`
  test.each(['M[i]', 'i'])('X[%s] is rejected', (index) => {
    const program = parseProgram(PLAIN.replace('INDEX', index))
    expect(refusal(() => program.kernel('k').schedule('s').compilation.loops)).toMatchObject({
      code: 'schedule/not-matching',
    })
  })
})

test.each([
  ['M[2 * g + q] + 4 * g', '', undefined],
  [
    '2 * M[2 * g + q] + 4 * g',
    '',
    'S is not indexed by 1 different iterators, or digits of its 16 coordinates here',
  ],
  ['4 * g + S[4 * g + q]', '', 'an index of an operand is made of iterators'],
  ['4 * g + H[2 * g + q]', '', 'an index of an operand is made of iterators'],
  ['4 * g + M[M[2 * g + q]]', '', 'an index of an operand is made of iterators'],
  ['M[2 * g + q]', ' + R[4 * g + M[2 * g + q]]', 'M runs to 16 and to 4'],
  [
    '4 * g + M[2 * g + q]',
    ' + R[M[2 * g + q]]',
    'R is in registers, where a dimension is one loop, and this has none',
  ],
])('an index %s, beside %s', (index, more, message) => {
  const n = more.includes('4 *') ? 'shared' : 'register'
  const text = `instr pick(D: i32[8] in global, S: i32[16] in global, M: i32[8] in global, H: u8[8] in global${more && `, R: i32[${n === 'shared' ? 16 : 4}] in ${n}`}) {
  iterate each [g, q] as SS { D[2 * g + q] = S[${index}] + M[2 * g + q] + i32(H[2 * g + q])${more} }
  js \`x\`
}`
  if (message === undefined) expect(() => parseProgram(text)).not.toThrow()
  else expect(refusal(() => parseProgram(text))).toMatchObject({ code: 'check/instr-index', message })
})

test('outputs are indexed by iterators alone', () => {
  const text = `instr put(D: i32[8] in global, M: i32[8] in global) { iterate each [i] as S { D[M[i]] = M[i] }
  js \`x\`
}`
  expect(refusal(() => parseProgram(text))).toMatchObject({ code: 'check/instr-index' })
})

test.each([
  ['i32[8] in shared packed 2', 'with fields of 1, 2, 4, 8 or 16 bits'],
  ['i32[8] in global packed 3', 'with fields of 1, 2, 4, 8 or 16 bits'],
  ['u8[8] in global packed 2', 'an operand of i32'],
  ['i32[8] in global ascending 3', 'multiples of the neighbours that ascend'],
  ['f32[8] in global ascending 2', 'an operand of i32'],
])('an operand %s is rejected', (operand, expected) => {
  const text = `instr copy(D: f32[8] in global, S: ${operand}) {
  iterate each [i] as S { D[i] = f32(S[i]) }
  js \`x\`
}`
  expect(refusal(() => parseProgram(text))).toMatchObject({
    code: 'check/instr-operand',
    expected: expect.stringContaining(expected),
  })
})

test('packed fields have no addresses', () => {
  const text = `instr copy(D: i32[8] in shared, S: i32[8] in global packed 2) {
  iterate each [i] as S { D[i] = S[i] }
  cuda \`f($S.at(0));\`
}`
  expect(refusal(() => parseProgram(text))).toMatchObject({
    code: 'check/instr-placeholder',
    message: 'elements of S are 2 bits of a word',
  })
})
