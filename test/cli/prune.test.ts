/** `spt prune`: files in, files out, against the masks that the library gives for the same numbers. */
import { spawn } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { fileURLToPath } from 'node:url'
import fc from 'fast-check'
import { afterAll, describe, expect, test } from 'vitest'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { checkOutFolder, writeFolder } from '../../src/cli/prune/folder.ts'
import { npzChunks } from '../../src/io/index.ts'
import { readTensor } from '../../src/node.ts'
import {
  blockWise,
  elementWise,
  keptElements,
  type LayerValues,
  layersFromValues,
  nOfM,
  type Pattern,
  type Pruned,
  prune,
  tileElementWise,
  tileVectorWise,
  tileWise,
  unionMasks,
  vectorNOfM,
} from '../../src/prune.ts'
import { runs } from '../support/cases.ts'
import { property } from '../support/property.ts'
import { wellFormed } from '../support/xml.ts'
import { Folder, spt } from './support.ts'

/** A command line whose usage errors are plain errors. */
const CALL = {
  reject(message: string): never {
    throw new Error(message)
  },
}

const folder = new Folder()
afterAll(() => folder.remove())

interface Plain {
  readonly type: string
  readonly shape: readonly number[]
  readonly bytes: Uint8Array
}
type Tensors = ReadonlyMap<string, Plain>
const product = (shape: readonly number[]): number => shape.reduce((p, n) => p * n, 1)

function written(tensors: Tensors, metadata?: Readonly<Record<string, string>>): Uint8Array {
  const header: Record<string, unknown> = metadata ? { __metadata__: metadata } : {}
  let at = 0
  for (const [name, { type, shape, bytes }] of tensors) {
    header[name] = { dtype: type, shape, data_offsets: [at, at + bytes.length] }
    at += bytes.length
  }
  const text = Buffer.from(JSON.stringify(header))
  const length = Buffer.alloc(8)
  length.writeBigUInt64LE(BigInt(text.length))
  return Buffer.concat([length, text, ...[...tensors.values()].map((t) => t.bytes)])
}

function readBack(path: string): { readonly tensors: Tensors; readonly metadata: unknown } {
  const all = readFileSync(path)
  const data = 8 + Number(all.readBigUInt64LE())
  const { __metadata__: metadata, ...header } = JSON.parse(all.subarray(8, data).toString())
  const tensors = Object.entries(
    header as Record<string, { dtype: string; shape: number[]; data_offsets: number[] }>,
  )
  return {
    metadata,
    tensors: new Map(
      tensors.map(
        ([
          name,
          {
            dtype,
            shape,
            data_offsets: [from, to],
          },
        ]) => [name, { type: dtype, shape, bytes: new Uint8Array(all.subarray(data + from!, data + to!)) }],
      ),
    ),
  }
}

/** Small integers, bit by bit: -0 among them. */
const WRITE: Readonly<
  Record<string, readonly [width: number, write: (b: Buffer, at: number, v: number) => void]>
> = {
  F64: [8, (b, at, v) => b.writeDoubleLE(v, at)],
  F32: [4, (b, at, v) => b.writeFloatLE(v, at)],
  F16: [
    2,
    (b, at, v) =>
      b.writeUInt16LE(
        (v < 0 || Object.is(v, -0) ? 0x8000 : 0) + [0, 0x3c00, 0x4000, 0x4200][Math.abs(v)]!,
        at,
      ),
  ],
  BF16: [
    2,
    (b, at, v) =>
      b.writeUInt16LE(
        (v < 0 || Object.is(v, -0) ? 0x8000 : 0) + [0, 0x3f80, 0x4000, 0x4040][Math.abs(v)]!,
        at,
      ),
  ],
}
function floats(type: string, values: readonly number[]): Uint8Array {
  const [width, write] = WRITE[type]!
  const out = Buffer.alloc(width * values.length)
  for (const [i, v] of values.entries()) write(out, i * width, v)
  return out
}
const numbers = (n: number) =>
  fc.array(fc.constantFrom(-3, -2, -1, -0, 0, 1, 2, 3), { minLength: n, maxLength: n })

interface DrawnLayer {
  readonly type: string
  readonly shape: readonly number[]
  readonly weights: readonly number[]
  readonly gradients: readonly number[]
}
const layer: fc.Arbitrary<DrawnLayer> = fc
  .tuple(
    fc.constantFrom(...Object.keys(WRITE)),
    fc.array(fc.integer({ min: 2, max: 5 }), { minLength: 2, maxLength: 4 }),
  )
  .chain(([type, shape]) =>
    fc.record({
      type: fc.constant(type),
      shape: fc.constant(shape),
      weights: numbers(product(shape)),
      gradients: numbers(product(shape)),
    }),
  )

const PATTERNS: readonly (readonly [string, Pattern, sparsity?: true])[] = [
  ['ew', elementWise(), true],
  ['tw --granularity 3', tileWise({ granularity: 3 }), true],
  ['tew --granularity 2 --delta 0.1', tileElementWise({ granularity: 2, delta: 0.1 }), true],
  ['tvw --granularity 2', tileVectorWise({ granularity: 2 }), true],
  ['bw --rows 2 --cols 3', blockWise({ rows: 2, cols: 3 }), true],
  ['nm --n 1 --m 3', nOfM({ n: 1, m: 3 })],
  ['vnm --v 2 --n 2 --m 5', vectorNOfM({ v: 2, n: 2, m: 5 })],
]

/** A place of the file as one of the matrix. */
function inMatrix(shape: readonly number[], transposed: boolean): (at: number) => number {
  const rows = transposed ? shape.at(-1)! : shape[0]!
  const cols = product(shape) / rows
  return (at) => (transposed ? (at % rows) * cols + Math.floor(at / rows) : at)
}

function matrixOf(
  name: string,
  { type, shape, weights, gradients }: DrawnLayer,
  transposed: boolean,
  scored: boolean,
): LayerValues {
  const place = inMatrix(shape, transposed)
  const turned = (values: readonly number[]): Float32Array => {
    const out = new Float32Array(values.length)
    values.forEach((v, at) => {
      out[place(at)] = v
    })
    return out
  }
  const rows = transposed ? shape.at(-1)! : shape[0]!
  return {
    name,
    rows,
    cols: product(shape) / rows,
    valueBytes: WRITE[type]![0],
    weights: turned(weights),
    ...(scored && { gradients: turned(gradients) }),
  }
}

const OTHERS: Tensors = new Map([
  ['bias', { type: 'F32', shape: [3], bytes: floats('F32', [1, -0, 2]) }],
  ['ids', { type: 'I64', shape: [2, 2], bytes: new Uint8Array(32).fill(7) }],
  ['row', { type: 'F16', shape: [1, 4, 1], bytes: new Uint8Array(8).fill(3) }],
])

/** What the folder must hold, and nothing else. */
async function holds(
  out: string,
  list: readonly DrawnLayer[],
  transposed: boolean,
  { masks, rest, report }: Pruned,
): Promise<void> {
  expect(readdirSync(out).toSorted()).toEqual(
    [
      'masks.safetensors',
      'report.json',
      'report.svg',
      ...(rest ? ['rest.safetensors'] : []),
      'weights.safetensors',
    ].toSorted(),
  )
  const { tensors, metadata } = readBack(`${out}/weights.safetensors`)
  expect(metadata).toEqual({ format: 'pt' })
  expect(tensors.size).toBe(list.length + OTHERS.size)
  for (const [name, other] of OTHERS)
    expect(tensors.get(name)).toEqual({ ...other, bytes: new Uint8Array(other.bytes) })
  const bits = readBack(`${out}/masks.safetensors`).tensors
  const beside = rest ? readBack(`${out}/rest.safetensors`).tensors : null
  const kept = unionMasks({ masks, ...(rest && { rest }) })
  list.forEach(({ type, shape, weights }, k) => {
    const place = inMatrix(shape, transposed)
    const inFile = (mask: Uint8Array) => Uint8Array.from(mask, (_, at) => mask[place(at)]!)
    expect(bits.get(`l${k}`)).toEqual({ type: 'BOOL', shape, bytes: inFile(masks[k]!) })
    if (beside) expect(beside.get(`l${k}`)).toEqual({ type: 'BOOL', shape, bytes: inFile(rest![k]!) })
    const left = weights.map((w, at) => (kept[k]![place(at)] === 1 ? w : 0))
    expect(tensors.get(`l${k}`)).toEqual({ type, shape, bytes: new Uint8Array(floats(type, left)) })
  })
  expect(JSON.parse(readFileSync(`${out}/report.json`, 'utf8'))).toEqual(report)
  // As kernels take them: matrices of what is kept.
  for (const [k, { shape, weights }] of list.entries()) {
    const rows = transposed ? shape.at(-1)! : shape[0]!
    const layer = { rows, cols: weights.length / rows }
    const matrix = new Float32Array(weights.length)
    for (const [at, w] of weights.entries()) matrix[inMatrix(shape, transposed)(at)] = w
    const path = `${out}/report.json#l${k}`
    expect(await readTensor(path, { dtype: 'f32' })).toEqual(keptElements(kept[k]!, layer, matrix))
    expect(await readTensor(path, { tiles: true })).toEqual(keptElements(masks[k]!, layer))
  }
  wellFormed(readFileSync(`${out}/report.svg`, 'utf8'))
}

const model = (list: readonly DrawnLayer[]): Uint8Array =>
  written(
    new Map([
      ...list.map((l, k) => [`l${k}`, { ...l, bytes: floats(l.type, l.weights) }] as const),
      ...OTHERS,
    ]),
    { format: 'pt' },
  )

property(
  [
    fc.array(layer, { minLength: 1, maxLength: 4 }),
    fc.constantFrom(...PATTERNS),
    fc.constantFrom(0.5, 0.6, 0.75),
    fc.record({
      transposed: fc.boolean(),
      scored: fc.boolean(),
      normalise: fc.constantFrom<'root' | 'length' | undefined>(undefined, 'root', 'length'),
      limited: fc.boolean(),
      excluded: fc.boolean(),
    }),
  ],
  { numRuns: runs(20) },
)(
  'the written masks equal those of the library, also for a later stage',
  async (list, [text, pattern, free], sparsity, how) => {
    const { transposed, scored, normalise } = how
    const weights = folder.file('m.safetensors', model(list))
    const excluded = how.excluded && list.length > 1
    // Of layers that are pruned: nobody asks for others.
    const scores = list.flatMap(({ shape, gradients: g }, l) =>
      excluded && l === 1 ? [] : [[`l${l}`, { type: 'F32', shape, bytes: floats('F32', g) }] as const],
    )
    const gradients = folder.file('g.safetensors', written(new Map(scores)))
    const limited = how.limited && free
    const layers = layersFromValues(list.map((l, k) => matrixOf(`l${k}`, l, transposed, scored)))
    const options = {
      pattern,
      ...(free && { sparsity }),
      ...(normalise && { normalise }),
      ...(excluded && { exclude: ['l1'] }),
      ...(limited && { limits: { 'l?': 0.6, l0: 0.55 } }),
    }
    const argv = [
      'prune',
      weights,
      '--pattern',
      ...text.split(' '),
      ...(free ? ['--sparsity', String(sparsity)] : []),
      ...(normalise ? ['--normalise', normalise] : []),
      ...(excluded ? ['--exclude', 'l1'] : []),
      ...(limited ? ['--limit', 'l?=0.6', '--limit', 'l0=.55'] : []),
      ...(transposed ? ['--transposed'] : []),
      ...(scored ? ['--gradients', gradients] : []),
    ]
    rmSync(folder.at('1'), { recursive: true, force: true })
    /** What both say. Fours in a last tile of one output may not keep to a limit. */
    const ranAs = async (ran: Awaited<ReturnType<typeof spt>>, more: object): Promise<Pruned | null> => {
      const made = await prune(layers, { ...options, ...more }).catch((e) => e as SptError)
      const message = made instanceof SptError ? made.diagnostics[0]!.message : ''
      if (made instanceof SptError)
        expect([limited, pattern.name, made.diagnostics[0]!.code]).toEqual([true, 'tvw', 'prune/limit'])
      expect([ran.code, ran.err.includes(message)]).toEqual([made instanceof SptError ? 1 : 0, true])
      return made instanceof SptError ? null : made
    }
    const first = await ranAs(await spt([...argv, '--out', folder.at('1')]), {})
    if (!first) return
    await holds(folder.at('1'), list, transposed, first)
    expect(JSON.parse((await spt([...argv, '--json'])).out)).toEqual(first.report)
    // What was there of an earlier call goes.
    const stage = await spt([...argv, '--after', folder.at('1'), '--out', folder.at('2')])
    const second = await ranAs(stage, { previousMasks: unionMasks(first) })
    if (second) await holds(folder.at('2'), list, transposed, second)
    expect(readdirSync(folder.path).filter((f) => f.startsWith('.'))).toEqual([])
  },
)

property([fc.array(layer, { minLength: 1, maxLength: 3 }), fc.boolean(), fc.constantFrom(1, 2, 3)], {
  numRuns: runs(10),
})('given tile-wise masks are kept unchanged', async (list, transposed, granularity) => {
  const weights = folder.file('m.safetensors', model(list))
  const layers = layersFromValues(list.map((l, k) => matrixOf(`l${k}`, l, transposed, false)))
  const pattern = tileWise({ granularity })
  const made = await prune(layers, { pattern, sparsity: 0.5 })
  const call = [
    'prune',
    weights,
    '--pattern',
    'tw',
    '--granularity',
    String(granularity),
    // Random layers may keep nothing, which is a warning otherwise.
    ...['--warn-below', '0'],
    ...(transposed ? ['--transposed'] : []),
  ]
  const [one, two] = [folder.at('given-1'), folder.at('given-2')]
  expect(await spt([...call, '--sparsity', '0.5', '--out', one])).toMatchObject({ code: 0 })
  const given = await spt([...call, '--masks', `${one}/masks.safetensors`, '--out', two])
  expect(given).toMatchObject({ code: 0, err: '' })
  await holds(two, list, transposed, {
    ...made,
    report: JSON.parse(readFileSync(`${two}/report.json`, 'utf8')),
  })
  const { layers: told } = JSON.parse(readFileSync(`${two}/report.json`, 'utf8'))
  expect(told).toEqual(made.report.layers)
})

const W: DrawnLayer = {
  type: 'F32',
  shape: [4, 4],
  weights: Array.from({ length: 16 }, (_, i) => (i % 7) - 3),
  gradients: [],
}
const ew = ['--pattern', 'ew', '--sparsity', '0.5'] as const
const pruned = async () =>
  prune(layersFromValues([matrixOf('l0', W, false, false)]), { pattern: elementWise(), sparsity: 0.5 })

test('layers without masks are kept dense and excluded from totals', async () => {
  const weights = folder.file('m.safetensors', model([W, W]))
  const mask = Uint8Array.from({ length: 16 }, (_, i) => i % 2)
  const masks = folder.file(
    'some.safetensors',
    written(new Map([['l1', { type: 'U8', shape: [4, 4], bytes: mask }]])),
  )
  const out = folder.at('some')
  const { code, err } = await spt(['prune', weights, '--pattern', 'ew', '--masks', masks, '--out', out])
  expect([code, err]).toEqual([0, ''])
  const report = JSON.parse(readFileSync(`${out}/report.json`, 'utf8'))
  expect(report).toMatchObject({ elements: 16, kept: 8, sparsity: 0.5, layers: [{ name: 'l1' }] })
  await holds(out, [W, W], false, { masks: [new Uint8Array(16).fill(1), mask], report })
})

test.each(['U8', 'BOOL'])('given masks of %s with other bytes than 0 and 1', async (type) => {
  const weights = folder.file('m.safetensors', model([W]))
  const bytes = Uint8Array.from({ length: 16 }, (_, i) => (i === 9 ? 7 : i % 2))
  const masks = folder.file('seven.safetensors', written(new Map([['l0', { type, shape: [4, 4], bytes }]])))
  const { code, err } = await spt(['prune', weights, '--pattern', 'ew', '--masks', masks])
  expect([code, err]).toEqual([1, expect.stringContaining('the mask of layer l0 has 7 in row 2, column 1')])
})

describe('pruned layers as kernel inputs', () => {
  const zeros: DrawnLayer = {
    type: 'F32',
    shape: [16, 16],
    weights: Array.from({ length: 256 }, (_, i) => ((i * i + 7 * i) % 101 < 55 ? 0 : ((i * 53) % 19) - 9)),
    gradients: [],
  }
  const run = (kernel: string, ...argv: string[]) =>
    spt(['run', `kernels/${kernel}.spt`, '--size', 'm=8', '--size', 'low=-inf', '--verify', ...argv])

  test('kept zeros count in 2:4 groups', async () => {
    const weights = folder.file('zeros.safetensors', model([zeros]))
    const out = folder.at('zeros')
    const tvw = ['--pattern', 'tvw', '--granularity', '4', '--sparsity', '0.6', '--out', out]
    expect(await spt(['prune', weights, ...tvw])).toMatchObject({ code: 0 })
    const bound = async (path: string) =>
      run(
        'tile-vector-wise',
        '--kernel',
        'pruned_linear_f16',
        '--schedule',
        'tvw_cpu(4, 8)',
        '--bind',
        `W=${path}`,
      )
    expect(await bound(`${out}/report.json#l0`)).toMatchObject({ code: 0, err: '' })
    const { code, err } = await bound(`${out}/weights.safetensors#l0`)
    expect([code, err]).toEqual([1, expect.stringContaining('bind/width')])
    expect(err).toContain('zeros of a dense tensor')
    expect(err).toContain('(tile_vector_wise(g = 4, s = 8))')
  })

  test.each([false, true])('convolutions, transposed: %s', async (transposed) => {
    const conv: DrawnLayer = { ...zeros, shape: [8, 4, 2, 4] }
    const weights = folder.file('conv.safetensors', model([conv]))
    const out = folder.at('conv')
    const tew = ['--pattern', 'tew', '--granularity', '2', '--delta', '0.1', '--sparsity', '0.6']
    const more = [...(transposed ? ['--transposed'] : []), '--out', out]
    expect(await spt(['prune', weights, ...tew, ...more])).toMatchObject({ code: 0 })
    const layer = `${out}/report.json#l0`
    const { code, out: told } = await run(
      'tile-element-wise',
      '--kernel',
      'pruned_linear',
      '--schedule',
      'tew_cpu(2)',
      '--bind',
      `W=${layer}`,
      '--bind',
      `kept=${layer}`,
      '--json',
    )
    const { sizes, random, verify } = JSON.parse(told)
    expect([code, verify.ok, random]).toEqual([0, true, ['X', 'b']])
    expect(sizes).toMatchObject(transposed ? { n: 4, k: 64 } : { n: 8, k: 32 })
    // Of other schedules nothing takes a set, and those that do are named, chosen or asked for.
    for (const schedule of [[], ['--schedule', 'cpu']]) {
      const bound = ['--kernel', 'pruned_linear', '--bind', `W=${layer}`, '--bind', `kept=${layer}`]
      const { code: other, err } = await run('tile-element-wise', ...bound, ...schedule)
      expect([other, err]).toEqual([1, expect.stringContaining('takes kept: --schedule tew_cpu, tew_gpu')])
    }
  })

  test('tensors that are not layers or masks', async () => {
    const weights = folder.file('m.safetensors', model([W]))
    const out = folder.at('whole')
    expect(await spt(['prune', weights, ...ew, '--out', out])).toMatchObject({ code: 0 })
    const reading = (path: string) => readTensor(path).then(String, (e: Error) => e.message)
    expect(await reading(`${out}/report.json#l1`)).toContain('io/unknown-array')
    expect(await readTensor(`${out}/report.json`)).toMatchObject({ kind: 'coords', shape: [4, 4] })
    const bytes = new Uint8Array(16).fill(2)
    writeFileSync(
      `${out}/masks.safetensors`,
      written(new Map([['l0', { type: 'U8', shape: [4, 4], bytes }]])),
    )
    expect(await reading(`${out}/report.json#l0`)).toContain('io/kind')
    rmSync(`${out}/masks.safetensors`)
    expect(await reading(`${out}/report.json#l0`)).toContain('io/not-found')
  })
})

describe('other files', () => {
  test('an archive of arrays', async () => {
    const file = folder.file(
      'm.npz',
      Buffer.concat([
        ...npzChunks({ l0: { values: Float32Array.from(W.weights), shape: W.shape, dtype: 'f32' } }),
      ]),
    )
    expect(await spt(['prune', file, ...ew, '--out', folder.at('npz')])).toMatchObject({ code: 0, err: '' })
    const { tensors } = readBack(folder.at('npz/weights.safetensors'))
    const { masks } = await pruned()
    expect([...tensors]).toEqual([
      [
        'l0',
        {
          type: 'F32',
          shape: [4, 4],
          bytes: new Uint8Array(
            floats(
              'F32',
              W.weights.map((w, i) => (masks[0]![i] ? w : 0)),
            ),
          ),
        },
      ],
    ])
  })

  test('several files, whose folder is unchanged', async () => {
    folder.file('shards/a.safetensors', model([W]))
    const index = folder.file(
      'shards/m.safetensors.index.json',
      JSON.stringify({
        weight_map: Object.fromEntries(['l0', ...OTHERS.keys()].map((n) => [n, 'a.safetensors'])),
      }),
    )
    const { code, err } = await spt(['prune', index, ...ew, '--out', folder.at('shards')])
    expect([code, err]).toEqual([2, expect.stringContaining('which is an input')])
    expect(await spt(['prune', index, ...ew, '--out', folder.at('shards/out')])).toMatchObject({
      code: 0,
      err: '',
    })
    await holds(folder.at('shards/out'), [W], false, await pruned())
  })
})

test.each([
  ['--exclude', 'bias'],
  ['--limit', 'bias=0.5'],
])('%s %s of what is copied', async (...option) => {
  const bias = { type: 'F32', shape: [4], bytes: floats('F32', [1, 2, 3, 0]) }
  const l0 = { ...W, bytes: floats('F32', W.weights) }
  const weights = folder.file('biased.safetensors', written(new Map(Object.entries({ l0, bias }))))
  const { code, err } = await spt(['prune', weights, ...ew, ...option])
  expect([code, err]).toEqual([
    1,
    expect.stringContaining('#bias, 4 of F32, is not a layer, and is copied unchanged'),
  ])
})

describe('the output folder', () => {
  const weights = folder.file('whole.safetensors', model([W]))
  const at = folder.at('kept')

  test.skipIf(!existsSync('/proc/self'))('is in a writable folder', async () => {
    const { code, err } = await spt(['prune', weights, ...ew, '--out', '/proc/x'])
    expect([code, err]).toEqual([
      1,
      expect.stringContaining("io/permission]: no file can be created in '/proc'"),
    ])
  })

  test('keeps other files', async () => {
    folder.file('kept/mine.txt', 'mine')
    const { code, err } = await spt(['prune', weights, ...ew, '--out', at])
    expect([code, err, readdirSync(at)]).toEqual([1, expect.stringContaining('io/not-empty'), ['mine.txt']])
    rmSync(folder.at('kept/mine.txt'))
    mkdirSync(folder.at('kept/report.json'))
    expect((await spt(['prune', weights, ...ew, '--out', at])).err).toContain('io/not-empty')
    rmSync(at, { recursive: true })
  })

  test("is not the model's folder, by any path", async () => {
    const inside = folder.file('stage/weights.safetensors', model([W]))
    symlinkSync(folder.at('stage'), folder.at('link'))
    mkdirSync(folder.at('elsewhere'))
    symlinkSync(weights, folder.at('elsewhere/weights.safetensors'))
    for (const [source, out] of [
      [inside, 'stage'],
      [inside, 'link'],
      [folder.at('link/weights.safetensors'), 'stage'],
      [folder.at('elsewhere/weights.safetensors'), 'elsewhere'],
      [inside, '.'],
    ] as const) {
      const { code, err } = await spt(['prune', source, ...ew, '--out', folder.at(out)])
      expect([source, code, err]).toEqual([source, 2, expect.stringContaining('which is an input')])
    }
    expect(new Uint8Array(readFileSync(inside))).toEqual(new Uint8Array(model([W])))
  })

  test('may be a symbolic link, and is unchanged after a failure', async () => {
    expect(await spt(['prune', weights, ...ew, '--out', at])).toMatchObject({ code: 0 })
    symlinkSync(at, folder.at('to-kept'))
    expect(await spt(['prune', weights, ...ew, '--out', folder.at('to-kept')])).toMatchObject({ code: 0 })
    await holds(at, [W], false, await pruned())
    // A name that no tensor of the format can have, which shows when it is written.
    const bad = folder.file(
      'bad.npz',
      Buffer.concat([
        ...npzChunks({
          l0: { values: Float32Array.from(W.weights), shape: W.shape, dtype: 'f32' },
          __metadata__: { values: Int32Array.of(1), shape: [1], dtype: 'i32' },
        }),
      ]),
    )
    const before = readdirSync(folder.path)
    const { code, err } = await spt(['prune', bad, '--pattern', 'nm', '--n', '1', '--m', '4', '--out', at])
    expect([code, err]).toEqual([1, expect.stringContaining('io/safetensors-tensor')])
    await holds(at, [W], false, await pruned())
    expect(readdirSync(folder.path)).toEqual(before)
  })

  test('temporary folders of killed processes are deleted after a day', async () => {
    const uuid = '0b1f4c1e-1111-4222-8333-0123456789ab'
    const day = new Date(Date.now() - 25 * 3_600_000)
    const left = (name: string, files: readonly string[], old: boolean): string => {
      mkdirSync(folder.at(name))
      for (const f of files) writeFileSync(folder.at(`${name}/${f}`), 'x')
      if (old) for (const f of [...files, '.']) utimesSync(folder.at(`${name}/${f}`), day, day)
      return name
    }
    const gone = left(`.killed-${uuid}`, ['weights.safetensors', 'masks.safetensors'], true)
    const stay = [
      left(`.killed-${uuid.replace('0b', '1b')}`, ['weights.safetensors'], false),
      left(`.killed-${uuid.replace('0b', '2b')}`, ['mine.txt'], true),
      left(`.killed-${uuid.replace('0b', '3b')}-old`, ['report.json'], true),
      left(`.killed-mine`, ['report.json'], true),
      left(`.other-${uuid}`, ['report.json'], true),
    ]
    expect(await spt(['prune', weights, ...ew, '--out', folder.at('killed')])).toMatchObject({ code: 0 })
    expect(existsSync(folder.at(gone))).toBe(false)
    for (const name of stay) {
      expect([name, existsSync(folder.at(name))]).toEqual([name, true])
      rmSync(folder.at(name), { recursive: true })
    }
  })

  test('keeps files that appear during the run', async () => {
    const out = folder.at('meanwhile')
    mkdirSync(out)
    const place = await checkOutFolder(CALL, out, ['report.json'], [])
    const before = readdirSync(folder.path)
    const chunks = () => {
      writeFileSync(`${out}/mine.txt`, 'mine')
      return [new Uint8Array(3)]
    }
    await expect(writeFolder(place, new Map([['report.json', chunks]]))).rejects.toThrow('io/not-empty')
    expect([readdirSync(folder.path), readdirSync(out)]).toEqual([before, ['mine.txt']])
  })

  test('is named in the error if a file cannot be written', async () => {
    const out = folder.at('named')
    const place = await checkOutFolder(CALL, out, [], [])
    const before = readdirSync(folder.path)
    await expect(writeFolder(place, new Map([['no/file', () => []]]))).rejects.toThrow(`'${out}/no'`)
    expect(readdirSync(folder.path)).toEqual(before)
  })

  const script = fileURLToPath(new URL('../../dist/src/cli/prune/folder.js', import.meta.url))
  test.skipIf(process.platform === 'win32').each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)(
    'is as it was after %s',
    async (signal) => {
      expect(existsSync(script), 'npm run build first').toBe(true)
      const out = folder.at(`signal-${signal}`)
      mkdirSync(out)
      writeFileSync(`${out}/report.json`, 'before')
      const before = readdirSync(folder.path)
      const program = `import { checkOutFolder, writeFolder } from ${JSON.stringify(script)}
        const folder = await checkOutFolder({}, ${JSON.stringify(out)}, ['report.json'], [])
        await writeFolder(folder, new Map([['report.json', async function* () {
          yield new Uint8Array(1000)
          console.log('writes')
          await new Promise((done) => setTimeout(done, 60_000))
        }]]))`
      const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      await new Promise((done) => child.stdout.once('data', done))
      expect(readdirSync(folder.path).length).toBe(before.length + 1)
      const ended = new Promise((done) => child.once('exit', (_, by) => done(by)))
      child.kill(signal)
      expect(await ended).toBe(signal)
      expect([readdirSync(folder.path), readFileSync(`${out}/report.json`, 'utf8')]).toEqual([
        before,
        'before',
      ])
    },
  )
})

test('progress, and escaped control characters in names', async () => {
  const lines: string[] = []
  const evil = 'l\u001b[31m\n0'
  const weights = folder.file(
    'evil.safetensors',
    written(new Map([[evil, { type: 'F32', shape: [4, 4], bytes: floats('F32', W.weights) }]])),
  )
  const host = { progress: (line: string) => void lines.push(line) }
  const { code, out, err } = await spt(
    [
      'prune',
      weights,
      '--pattern',
      'tw',
      '--granularity',
      '2',
      '--sparsity',
      '0.5',
      '--out',
      folder.at('evil'),
    ],
    host,
  )
  expect([code, err]).toEqual([0, ''])
  expect(lines).toEqual([
    'outputs: 1 of 1, l\\u001b[31m\\n0',
    'inputs of tiles: 1 of 1, l\\u001b[31m\\n0',
    'report: 1 of 1, l\\u001b[31m\\n0',
    'writing weights.safetensors',
    'writing masks.safetensors',
    '',
  ])
  expect(folder.plain(out)).toMatch(
    /^tw\(2\) for a sparsity of 50\.0 %\nlayer +outputs × inputs +sparsity +norm +outputs kept +tiles +bytes, dense → pattern\nl\\u001b\[31m\\n0 +4 × 4 +50\.0 % +0\.\d{3} +\d +\d +64 bytes → \d+ bytes\ntotal +16 +50\.0 % .*\n.*\nwrote FOLDER\/evil\n$/,
  )
})

describe('options', () => {
  const weights = folder.file('numbers.safetensors', model([W]))
  const pruned = (...more: string[]) => spt(['prune', weights, '--json', ...more])

  test('numbers may have any notation', async () => {
    const ways = [['0.5'], ['5e-1'], ['.5'], ['+5.0E-1']]
    const made = await Promise.all(ways.map(([s]) => pruned('--pattern', 'ew', '--sparsity', s!)))
    for (const m of made) expect(m).toEqual(made[0])
    expect(made[0]!.code).toBe(0)
    const tew = ['--pattern', 'tew', '--granularity', '2e0', '--sparsity', '5e-1']
    expect((await pruned(...tew, '--delta', '1e-1', '--limit', 'l0=9e-1')).code).toBe(0)
    for (const wrong of ['1e', 'e1', '1e999', '0x1', ''])
      expect((await pruned('--pattern', 'ew', `--sparsity=${wrong}`)).code).toBe(2)
  })

  test('hints match the mistake', async () => {
    const tew = ['--pattern', 'tew', '--granularity', '2']
    const below = await pruned(...tew, '--sparsity', '.5', '--delta=-1')
    expect(below.err).toMatch(/^error\[prune\/delta\]: delta cannot be -1\n {2}= expected: .* less than 1\n$/)
    const full = await pruned(...tew, '--sparsity', '.5', '--delta', '.5')
    expect(full.err).toContain('hint: choose a smaller --delta, or --pattern ew')
    const masks = await pruned('--pattern', 'ew', '--masks', folder.file('masks.npz', 'none'))
    expect(masks.err).toMatch(
      /^error\[io\/unknown-extension\].*masks\.npz.*\n {2}= expected: \.safetensors\n$/,
    )
  })

  test('a weight outside f32 is reported, and its layer skipped', async () => {
    const bytes = new Uint8Array(new Float64Array([1, 2, 3, 1e300]).buffer)
    const tensors = new Map<string, Plain>([
      ['wide', { type: 'F64', shape: [2, 2], bytes }],
      ['l0', { ...W, bytes: floats('F32', W.weights) }],
    ])
    const file = folder.file('wide.safetensors', written(tensors))
    const ew = ['prune', file, '--pattern', 'ew', '--sparsity', '0.5']
    const { code, err } = await spt(ew)
    expect([code, err]).toEqual([1, expect.stringContaining('does not fit f32')])
    expect(err).toContain('hint: layers are read as f32: scale the weights, or exclude the layer')
    expect((await spt([...ew, '--exclude', 'wide'])).code).toBe(0)
  })
})

describe('the report', () => {
  const out = folder.at('told')
  const at = `${out}/report.json`
  const made = spt(['prune', folder.file('told.safetensors', model([W, W])), ...ew, '--out', out]).then(() =>
    readFileSync(at, 'utf8'),
  )
  const reading = async (text: string): Promise<string> => {
    writeFileSync(at, text)
    return readTensor(`${at}#l0`).then(
      () => 'read',
      (e: Error) => e.message,
    )
  }

  property([fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })], { numRuns: runs(10) })(
    'that is truncated is rejected',
    async (where) => {
      const whole = (await made).trimEnd()
      expect(await reading(whole.slice(0, Math.floor(where * whole.length)))).toMatch(
        /io\/(prune-report|empty)/,
      )
      expect(await reading(whole)).toBe('read')
    },
  )

  test.each([
    ['rows', /"rows": 4/, '"rows": 5'],
    ['columns', /"cols": 4/, '"cols": 40'],
    ['rows as text', /"rows": 4/, '"rows": "4"'],
    ['negative rows', /"rows": 4/, '"rows": -4'],
    ['the number of elements', /("name": "l0"[\s\S]*?"kept": )\d+/, '$1 15'],
    ['a layer twice', /"l1"/, '"l0"', "has the layer 'l0' twice"],
    ['a layer without a name', /"name": "l0"/, '"nam": "l0"'],
    ['a name that is none', /"name": "l0"/, '"name": 5'],
    ['no layers', /"layers"/, '"layer"'],
    ['a layer that is none', /"layers": \[/, '"layers": [null, '],
    ['more after it', /$/, '{}'],
  ] as const)('%s', async (_, from, to, ...said: string[]) => {
    const whole = (await made).trimEnd()
    expect(whole).toMatch(from)
    const message = await reading(whole.replace(from, to))
    expect(message).toContain('io/prune-report')
    for (const part of said) expect(message).toContain(part)
    expect(await reading(whole)).toBe('read')
  })
})

test('--pattern 2:4 names the pattern and its parameters', async () => {
  const { code, err } = await spt(['prune', 'model.safetensors', '--pattern', '2:4', '--sparsity', '0.5'])
  expect([code, err]).toEqual([2, expect.stringContaining('hint: --pattern nm --n 2 --m 4\n')])
})
