/**
 * Every size on tensor cores: whatever sizes a kernel of 16-bit floats or tf32 has on a GPU, `auto` takes a schedule whose text has
 * their instructions. Nothing runs: the choice is asked with the figures of an H200 and of an A100.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { decide, dispatchCall } from '../../src/api/dispatch/dispatch-conditions.ts'
import type { Diagnostic } from '../../src/ast/diagnostics/diagnostic.ts'
import { elaborate } from '../../src/elaborate/index.ts'
import { type Kernel, load } from '../../src/node.ts'
import { loadProgram } from '../../src/schedule/steps/language.ts'
import { staleChoices } from '../../src/search/choice/table-text.ts'
import { isTurnOf, LONG, SEED, sample } from '../support/cases.ts'
import { compileTogether, noNvcc } from '../support/nvcc.ts'

/** Sizes that no tile divides: multiples of 8, which asynchronous copies take as they are, and primes. */
const CLASSES = {
  'multiples of 8': [1000, 3000, 5000, 1064],
  'multiples of 2': [1002, 3002, 5002, 1066],
  primes: [1009, 3001, 5003, 1069],
} as const
type Class = keyof typeof CLASSES
const IN_TURN = (Object.keys(CLASSES) as Class[]).map((_, k, all) => all[(k + SEED) % all.length]!)

/** Sizes that are not an extent of a product: of blocks, features of a head, experts. */
const FIXED: Readonly<Record<string, number>> = { b: 64, d: 64, e: 64, experts: 64, groups: 27, heads: 8 }
/** Blocks and features of attention besides those. */
const ATTENDED: readonly Readonly<Record<string, number>>[] = [
  { b: 64, d: 72, e: 72 },
  { b: 64, d: 80, e: 80 },
  { b: 64, d: 96, e: 96 },
  { b: 32, d: 40, e: 100 },
  { b: 16, d: 128, e: 24 },
  { b: 48, d: 33, e: 50 },
]
const D_IS_WIDTH = new Set(['block_spmm_f16', 'block_sddmm_f16', 'spmm_half'])

/** Moves data, and multiplies nothing. */
const NO_PRODUCT = new Set(['transpose_f16'])

const INSTRUCTIONS = /\b(?:wgmma\.mma_async|mma\.sync|mma\.sp)/

const files = readdirSync('kernels').filter((f) => f.endsWith('.spt'))

interface Open {
  readonly kernel: Kernel
  readonly choice: Parameters<typeof dispatchCall>[0]
}

const stale: Diagnostic[] = []

/** The kernels of `file` that products on tensor cores are for, with their choices. */
async function kernelsOf(file: string): Promise<readonly Open[]> {
  const path = `kernels/${file}`
  const source = readFileSync(path, 'utf8')
  const own = [...source.matchAll(/^schedule (\w+)(?:<[^>]*>)?\.auto\b/gm)].map((m) => m[1]!)
  if (own.length === 0) return []
  const { choices } = elaborate(await loadProgram(path, async (p) => readFileSync(p, 'utf8')))
  const program = await load(path)
  stale.push(...staleChoices(...program.kernels.map((name) => program.kernel(name))))
  return program.kernels
    .filter((name) => own.includes(name.replace(/<.*/, '')) && choices.get(name)?.has('auto'))
    .map((name) => ({ kernel: program.kernel(name), choice: choices.get(name)!.get('auto')! }))
    .filter(({ kernel }) => !NO_PRODUCT.has(kernel.name) && isForTensorCores(kernel))
}

const isForTensorCores = ({ name, compilation }: Kernel): boolean =>
  name.endsWith('_tf32') ||
  [...compilation.source.buffers.values()].some(
    (b) => b.role === 'in' && (b.dtype === 'f16' || b.dtype === 'bf16'),
  )

/** What `auto` takes, as `schedule(arguments)`, for sizes of a class on a chip. */
function chosen(
  { kernel, choice }: Open,
  of: Class,
  capability: number,
  covered: number,
  others: Readonly<Record<string, number>> = FIXED,
): readonly string[] {
  const sizes = kernel.compilation.source.params.filter((p) => p.kind === 'size').map((p) => p.name)
  const known = new Map<string, number>()
  for (const [k, name] of sizes.entries()) {
    const fixed = name === 'd' && D_IS_WIDTH.has(kernel.name) ? undefined : others[name]
    known.set(name, fixed ?? CLASSES[of][k % 4]!)
  }
  const decisions = decide(
    dispatchCall(
      choice,
      choice.params.map(() => 64),
    ),
    (v) => {
      const asked = choice.device.get(v.name)
      if (asked?.kind === 'is') return asked.device === 'cuda' ? 1 : 0
      if (v.name === 'capability') return capability
      if (v.name === 'processors') return 132
      if (v.name.startsWith('fill_ratio(')) return covered
      if (v.name.startsWith('has(') || v.name === 'cost_model') return 0
      return known.get(v.name) ?? 100
    },
  )
  return decisions.map(({ selection: { schedule, args } }) => `${schedule}(${args.join(', ')})`)
}

/** Short runs print a schedule with the arguments of the class that comes first, another one for each seed. */
const emitted = new Map<string, readonly string[]>()

function textsOf(kernel: Kernel, text: string): readonly string[] {
  const [, name = '', list = ''] = /^(\w+)\((.*)\)$/.exec(text)!
  const key = `${kernel.name}.${LONG ? text : name}`
  const args = list === '' ? [] : list.split(', ').map(Number)
  const known =
    emitted.get(key) ??
    kernel
      .schedule(name, ...args)
      .emit('cuda')
      .map((t) => t.text)
  emitted.set(key, known)
  return known
}

const opened = (await Promise.all(files.map(kernelsOf))).flat()

test('the dense and block-sparse products are among the kernels', () => {
  const names = opened.map((o) => o.kernel.name)
  expect(names).toEqual(expect.arrayContaining(['gemm<f16>', 'gemm<bf16>', 'gemm_tf32', 'block_spmm_f16']))
})

/** Half of them for each seed: printing takes a quarter of a second. */
const turned = opened.filter((_, k) => isTurnOf(k, 2))

describe.each(turned.map((o) => [o.kernel.name, o] as const))('%s', (_, open) => {
  test.each(IN_TURN)('%s', (of) => {
    for (const covered of [0.01, 0.3, 1]) {
      const texts = chosen(open, of, 9, covered)
      for (const text of texts)
        expect(
          textsOf(open.kernel, text).some((t) => INSTRUCTIONS.test(t)),
          `${text}, of which ${covered} is covered`,
        ).toBe(true)
    }
  })
})

test.each(['ragged_attention<f16>', 'dynamic_attention<f16>'])(
  '%s with other feature and block sizes',
  (name) => {
    const open = opened.find((o) => o.kernel.name === name)!
    const choices = ATTENDED.map((others) => chosen(open, 'primes', 9, 1, { ...FIXED, ...others }))
    for (const [k, texts] of choices.entries())
      expect(texts, JSON.stringify(ATTENDED[k])).toEqual([expect.stringMatching(/^mma\(/)])
    const printed = LONG || name.startsWith('ragged') ? sample(choices.flat(), 1) : []
    for (const text of printed) {
      const args = text.slice('mma('.length, -1).split(', ').map(Number)
      const texts = open.kernel.schedule('mma', ...args).emit('cuda')
      expect(texts.some((t) => INSTRUCTIONS.test(t.text))).toBe(true)
    }
  },
)

/** Schedules with a thread for each element of the result, which are for small work. */
const SCALAR: Readonly<Record<string, readonly string[]>> = {
  spmm: ['spmm', 'gpu'],
  sddmm: ['sddmm', 'gpu'],
  sddmm_pattern: ['sddmm', 'gpu'],
  spmv: ['spmv', 'gpu'],
  gemm: ['gemm', 'simple'],
}

test.each(Object.entries(SCALAR))('%s avoids scalar schedules', async (name, [file, scalar]) => {
  const path = `kernels/${file}.spt`
  const { choices } = elaborate(await loadProgram(path, async (p) => readFileSync(p, 'utf8')))
  const choice = choices.get(name)!.get('auto')!
  for (const d of [17, 50, 67, 131, 132, 514, 1001])
    for (const [mean, longest] of [
      [3, 9],
      [12, 40],
      [75, 300],
      [16, 80_000],
    ] as const) {
      const figures = new Map<string, number>(
        Object.entries({ capability: 9, processors: 132, d, m: 40_009, n: 40_009, k: 1009 }),
      )
      const decisions = decide(dispatchCall(choice, []), (v) => {
        const asked = choice.device.get(v.name)
        if (asked?.kind === 'is') return asked.device === 'cuda' ? 1 : 0
        if (v.name.startsWith('mean(')) return mean
        if (v.name.startsWith('longest(')) return longest
        if (v.name.startsWith('shortest(')) return 1
        if (v.name.startsWith('nnz(')) return 40_009 * mean
        return figures.get(v.name) ?? 0
      })
      for (const { selection: c } of decisions) expect(c.schedule, `${c.text}, d = ${d}`).not.toBe(scalar)
    }
})

test('Ampere schedules accept every size', () => {
  for (const name of ['gemm<f16>', 'gemm<bf16>', 'gemm_tf32', 'block_spmm_f16'])
    for (const of of IN_TURN) {
      const open = opened.find((o) => o.kernel.name === name)!
      for (const text of chosen(open, of, 8, 1))
        expect(
          textsOf(open.kernel, text).some((t) => INSTRUCTIONS.test(t)),
          `${name} ${of}: ${text}`,
        ).toBe(true)
    }
})

test.skipIf(noNvcc !== null)('nvcc compiles them', () => {
  const texts = sample([...new Set([...emitted.values()].flat())], 6)
  expect(compileTogether(texts)).toBe('')
})

test('no dispatch table is out of date: if a kernel or schedule changed, search again; or renew the hashes (UPDATE_GOLDEN=1)', () => {
  const HASH = /hash "\w+"/
  if (process.env.UPDATE_GOLDEN)
    for (const { span, hint } of stale)
      writeFileSync(span!.source, readFileSync(span!.source, 'utf8').replace(HASH, HASH.exec(hint!)![0]))
  expect(stale).toEqual([])
})
