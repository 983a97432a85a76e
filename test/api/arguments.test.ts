/** Every call, with each of its arguments replaced by whatever there is in JavaScript: it works, or it is an `SptError`. */

import { afterAll, beforeAll, expect, test } from 'vitest'
import * as onDevice from '../../src/device.ts'
import * as api from '../../src/node.ts'

// biome-ignore lint/suspicious/noExplicitAny: calls that TypeScript would refuse are what is tested
type Loose = any
type Call = readonly [name: string, self: Loose, fn: Loose, ...args: unknown[]]

const bare = (): object => Object.create(null)
const STRANGE: Readonly<Record<string, unknown>> = {
  symbol: Symbol('x'),
  bare: bare(),
  null: null,
  undefined: undefined,
  'a number': 3,
  huge: 1e12,
  infinity: Number.POSITIVE_INFINITY,
  nan: Number.NaN,
  negative: -1,
  object: {},
  list: [],
  'list of a symbol': [Symbol('y')],
  'list of a bare object': [bare()],
  function: () => {},
  'no text': '',
  word: 'zz',
  big: 10n,
  'half a tensor': { kind: 'coords' },
  'typed array': new Float32Array(2),
  true: true,
}

const TEXT = `import "sparsetile/kernels/formats.spt"
import "sparsetile/kernels/formats-tensors.spt"
kernel k(n: size, m: size, alpha: f32) {
  axis i = dense_fixed(n)
  axis j = sparse_variable(i, m)
  axis f = dense_fixed(m)
  buffer A: f32[i, j] in
  buffer B: f32[i, f] in
  buffer y: f32[i] out
  buffer C: f32[i, f] out
  iterate s [i, j] as SR { y[i] += alpha * A[i, j] }
  iterate t [i, f] as SS { C[i, f] = B[i, f] }
}
schedule k.one(b = 8) { split t.f by b }
schedule k.pick choose { otherwise one(4) }`

let device: api.Device
let calls: readonly Call[]

beforeAll(async () => {
  device = await api.devices.cpu()
  const p = await api.load(TEXT)
  const k = p.kernel()
  const A = api.coords([3, 4], [[0, 1], [0, 2]], [1, 2]) // biome-ignore format: columns
  const B = api.dense([3, 4], new Float32Array(12))
  const c = await k.as('A', 'csr').build(device)
  const q = await c.bind({ A, B, alpha: 1 })
  const [graph, stream, event, buffer] = [
    await q.graph(),
    device.stream('x'),
    device.event(),
    device.alloc(16, 'b'),
  ]
  const R = await onDevice.upload(device, A)
  const parts = await onDevice.convertForKernel(c, 'A', R)
  const csr = p.format('csr')
  const stored = csr.convert(A)
  const of = (self: Loose, name: string, ...args: unknown[]): Call => [name, self, self[name], ...args]
  const free = (name: string, ...args: unknown[]): Call => [
    name,
    null,
    (api as Loose)[name] ?? (onDevice as Loose)[name],
    ...args,
  ]
  calls = [
    of(p, 'kernel', 'k'),
    of(p, 'format', 'bsr', 2),
    of(k, 'parameters', 'one'),
    of(k, 'steps', 'one', 4),
    of(k, 'schedule', 'one', 4),
    of(k, 'choose', device, {}),
    of(k, 'apply', []),
    of(k, 'mergeParts', 'A'),
    of(k, 'parts', 'A'),
    of(k, 'each', 'A', (x: unknown) => x),
    of(k, 'loop', 'i'),
    of(k, 'replay', []),
    of(k, 'as', 'A', 'bsr', 2),
    of(k, 'fuse', ['t.i', 't.f'], 'x'),
    of(k, 'attach', 'j', 'i'),
    of(k, 'split', 't.f', 4, ['a', 'b']),
    of(k, 'bind', { 't.i': 'block.x' }),
    of(k, 'require', 'n', { multiple: 4 }),
    of(k, 'cacheRead', 'B', 't.i', 'shared', 'Bs', {}),
    of(k, 'tensorize', 't.f', 'mma'),
    of(k, 'build', device),
    of(c, 'bind', { A, B, alpha: 1 }, {}),
    ['a call', null, c, { A, B, alpha: 1 }, {}],
    of(q, 'set', 'A', [1, 2]),
    of(q, 'get', 'y'),
    of(q, 'time', 1),
    of(q, 'measure', { repeats: 1, warmups: 0 }),
    of(q, 'verify', {}),
    ...['warmups', 'repeats', 'batch', 'flush', 'by'].map(
      (o): Call => [
        `measure ${o}`,
        q,
        (x: unknown) => q.measure({ repeats: 1, warmups: 0, [o]: x } as Loose),
        1,
      ],
    ),
    ...['fraction', 'count', 'seed'].map(
      (o): Call => [
        `sample ${o}`,
        q,
        (x: unknown) => q.verify({ sample: { ...(o === 'seed' && { count: 1 }), [o]: x } as Loose }),
        1,
      ],
    ),
    of(graph, 'launch', stream),
    of(graph, 'time', 1, graph),
    of(stream, 'record', event),
    of(stream, 'wait', event),
    of(event, 'since', event),
    of(device, 'alloc', 16, 'label'),
    of(device, 'upload', buffer, new Float32Array(4), 0),
    of(device, 'download', buffer),
    of(device, 'run', []),
    of(device, 'time', [], 1),
    of(device, 'graph', []),
    of(device, 'stream', 'x'),
    of(device, 'compile', { target: 'js', name: 'm', text: '', entries: [] }),
    ['a command', device, (kind: unknown) => device.run([{ kind } as Loose]), 'clear'],
    ['a cleared buffer', device, (b: Loose) => device.run([{ kind: 'clear', buffer: b }]), buffer],
    free('measure', device, [], { repeats: 1, warmups: 0 }),
    free('upload', device, A),
    free('storageFormat', c, 'A'),
    free('convertForKernel', c, 'A', R, {}),
    free('planConversion', device, onDevice.storageFormat(c, 'A'), 0),
    free('convert', device, R, onDevice.storageFormat(c, 'A'), parts.given, 0),
    free('bindResident', c, { A: parts, B, alpha: 1 }),
    of(csr, 'convert', A, {}),
    of(csr, 'svg', A, {}, {}),
    of(csr, 'fromParts', [3, 4], stored.parts, {}),
    of(api, 'packIndices', [0, 3, 1], 2),
    of(api, 'unpackIndices', api.packIndices([0, 3, 1], 2), 2, 3),
    ['a part', csr, (part: Loose) => csr.fromParts([3, 4], [part]), stored.parts[0]],
    ['the tensor of a part', csr, (tensor: Loose) => csr.fromParts([3, 4], [{ tensor, tables: {} }]), B],
    of(p.format('csf'), 'withOrder', 3),
    free('coords', [3, 4], [[0], [0]], [1], 'f32'),
    free('dense', [2], [1, 2], 'f32'),
    free('stored', [3, 4], {}, [1], 'f32'),
    free('render', [], [], {}),
    free('readTensor', 'nowhere.mtx', {}),
    free('instructionTest', {}),
  ]
})
afterAll(() => device.dispose())

test('unexpected arguments are rejected', async () => {
  const wrong: string[] = []
  for (const [name, self, fn, ...args] of calls)
    for (const at of args.keys())
      for (const [what, x] of Object.entries(STRANGE)) {
        try {
          await fn.apply(self, args.with(at, x))
        } catch (e) {
          if (!(e instanceof api.SptError)) wrong.push(`${name}: ${what} in place ${at}: ${e}`)
        }
      }
  expect(wrong).toEqual([])
})

test('a promise in place of a value is rejected with a hint to await it', async () => {
  const tensor = Promise.resolve(api.coords([3, 4], [[0], [0]], [1])) as never
  const failed = (await onDevice.upload(device, tensor).catch((e: unknown) => e)) as api.SptError
  expect(failed.diagnostics[0]).toMatchObject({ code: 'api/argument', hint: 'await the promise' })
})

test('SciPy-like objects and nested lists get a hint with the call that makes a tensor', async () => {
  const k = (await import('../../src/api/programs/program.ts')).parseProgram(
    'kernel k(n: size) {\n  axis i = dense_fixed(n)\n  buffer x: f32[i] in\n  buffer y: f32[i] out\n  iterate c [i] as S { y[i] = x[i] }\n}',
  )
  const device = await (await import('../../src/node.ts')).devices.cpu()
  const compiled = await k.kernel().build(device)
  const hint = (x: unknown): string => {
    try {
      compiled.bindOnHost({ x: x as never, n: 2 })
    } catch (e) {
      return (e as { diagnostics: { hint: string }[] }).diagnostics[0]!.hint
    }
    return ''
  }
  expect(hint({ indptr: [0, 1], indices: [0], data: [1] })).toContain(
    'stored([rows, cols], { j: { indptr, indices } }, data)',
  )
  expect(hint({ row: [0], col: [0], data: [1] })).toContain('coords([rows, cols], [row, col], data)')
  expect(
    hint([
      [1, 2, 3],
      [4, 5, 6],
    ]),
  ).toContain('dense([2, 3], rows.flat())')
})
