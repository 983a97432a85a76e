/** Options that nobody reads are refused, and names of the user's are only names. */
import { describe, expect, test, vi } from 'vitest'
import { flatInputs } from '../../src/api/inputs/flat-inputs.ts'
import { dense, stored } from '../../src/api/inputs/tensors.ts'
import { parseProgram } from '../../src/api/programs/program.ts'
import * as onDevice from '../../src/device.ts'
import * as browser from '../../src/index.ts'
import * as api from '../../src/node.ts'
import { createCpuDevice } from '../../src/runtime/cpu/device.ts'

const kernel = (size: string, buffer: string, out: string): string => `
kernel k(${size}: size) {
  axis i = dense_fixed(${size})
  buffer ${buffer}: f32[i] in
  buffer ${out}: f32[i] out
  iterate c [i] as S { ${out}[i] = ${buffer}[i] + 1 }
}`

const compiled = (text: string) => parseProgram(text).kernel().build(createCpuDevice())
const values = dense([2], Float32Array.of(1, 2))

describe('unknown options', async () => {
  const loose = { ...api, ...onDevice } as unknown as Record<string, (...args: unknown[]) => unknown>
  const devices = api.devices as unknown as Record<string, (options: unknown) => unknown>
  const own = parseProgram(kernel('m', 'X', 'Y')).kernel()
  const wrong = { strange: 1 }
  const steps = own as unknown as Record<string, (...args: unknown[]) => unknown>
  const ell = await api.load('sparsetile/kernels/formats.spt')
  const others: Readonly<Record<string, () => unknown>> = {
    load: () => loose.load!('kernel', wrong),
    'load in a browser': () => browser.load('kernel', wrong as never),
    'devices.cpu': () => devices.cpu!(wrong),
    'devices.webgpu': () => devices.webgpu!(wrong),
    'devices.webgpu in a browser': () => browser.devices.webgpu(wrong as never),
    'devices.cuda': () => devices.cuda!(wrong),
    readTensor: () => loose.readTensor!('nowhere.mtx', wrong),
    render: () => loose.render!([], [], wrong),
    measure: async () => loose.measure!(createCpuDevice(), [], wrong),
    svg: () => ell.format('ell', 2).svg(api.coords([1, 1], [[0], [0]]), {}, wrong as never),
    unroll: () => steps.unroll!('i', 2, wrong),
    require: () => steps.require!('m', wrong),
    cacheRead: () => steps.cacheRead!('X', 'i', 'register', undefined, wrong),
    accumulate: () => steps.accumulate!('Y', 'i', 2, wrong),
  }
  test.each(Object.entries(others))('of %s', async (_, call) => {
    await expect((async () => call())()).rejects.toThrow(/api\/unknown-option: .* has no option strange/)
  })
  test.each(['load', 'readTensor', 'measure', 'render'])('of %s are an object', async (name) => {
    const call = async () => loose[name]!('x.npy', [], 5)
    await expect(
      name === 'load' || name === 'readTensor' ? (async () => loose[name]!('x.npy', 5))() : call(),
    ).rejects.toThrow(/api\/argument: the options of .* cannot be 5/)
  })
  test('fields of steps', () => {
    expect(() =>
      own.apply([{ stage: 2, step: { kind: 'split', loop: 'i', by: 2, inot: ['a', 'b'] } }] as never),
    ).toThrow('schedule/bad-step: split has no inot')
    expect(() =>
      own.apply([{ stage: 1, step: { kind: 'reorder', loops: ['i'], into: 'x' } }] as never),
    ).toThrow('schedule/bad-step: reorder has no into')
  })
  const k = await compiled(kernel('m', 'X', 'Y'))
  const prepared = await k.bind({ X: values })
  const calls: readonly (readonly [string, () => Promise<unknown>])[] = [
    ['sizes', () => k.bind(...flatInputs({ tensors: { X: values }, sizes: { m: 3 } } as never))],
    ['size', () => k(...flatInputs({ tensors: { X: values }, size: { m: 2 } } as never))],
    ['tensor', () => k.bind(...flatInputs({ tensor: { X: values } } as never))],
    ['repeat', () => prepared.measure({ repeat: 3 } as never)],
    ['times', () => prepared.explain({ times: false } as never)],
    [
      'wid',
      async () =>
        parseProgram(kernel('m', 'X', 'Y'))
          .kernel()
          .emit('c', { wid: true } as never),
    ],
    ['samples', () => prepared.verify({ samples: 3 } as never)],
    ['counts', () => prepared.verify({ sample: { counts: 3, seed: 1 } } as never)],
  ]
  test.each(calls)('%s', async (name, call) => {
    await expect(call()).rejects.toThrow(new RegExp(`api/unknown-option: .* has no option ${name}`))
  })
  test('an unknown array of a stored tensor', () => {
    const arrays = { indptr: [0, 1], indices: [0] }
    expect(() => stored([1, 1], { j: { ...arrays, foo: [0] } as never })).toThrow(
      'api/unknown-option: the arrays of axis j cannot include foo',
    )
  })
  test('a size that contradicts the bindings', async () => {
    await expect(k.bind({ X: values, m: 3 })).rejects.toThrow(
      'bind/size-mismatch: size m is 3 by the value given, and 2 by dimension 0 of X',
    )
  })
})

const NAMES = ['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'valueOf']

test.each(NAMES)('a size, an input and an output called %s', async (name) => {
  const record = <T>(value: T): Record<string, T> => Object.fromEntries([[name, value]])
  for (const [text, inputs, out] of [
    [kernel(name, 'X', 'Y'), { tensors: { X: Float32Array.of(1, 2) }, params: record(2) }, 'Y'],
    [kernel('m', name, 'Y'), { tensors: record(Float32Array.of(1, 2)), params: { m: 2 } }, 'Y'],
    [kernel('m', 'X', name), { tensors: { X: values } }, name],
  ] as const) {
    const k = await compiled(text)
    const outputs = new Map(Object.entries(await k(...flatInputs(inputs))))
    expect([...outputs.get(out)!.values!]).toEqual([2, 3])
    const prepared = await k.bind(...flatInputs(inputs))
    expect((await prepared.verify()).problems).toEqual([])
    prepared.free()
  }
})

test('values of options are checked before a file is read', async () => {
  await expect(api.readTensor('nowhere.mtx', { tiles: 3 as never })).rejects.toMatchObject({
    diagnostics: [{ code: 'api/argument', expected: 'true or false' }],
  })
})

test('a page that a server does not have is not a program', async () => {
  const fetched = vi.spyOn(globalThis, 'fetch').mockResolvedValue(new Response('kernel', { status: 404 }))
  await expect(browser.load('./none.spt')).rejects.toMatchObject({
    diagnostics: [{ code: 'import/unreadable', message: expect.stringContaining('404') }],
  })
  fetched.mockRestore()
})

test('a name before the dot of an iterator is that of its iteration, never empty', () => {
  const own = parseProgram(`kernel k(n: size) {
    axis i = dense_fixed(n)
    axis j = dense_fixed(n)
    buffer X: f32[i, j] in
    buffer Y: f32[i, j] out
    iterate c [i, j] as SS { Y[i, j] = X[i, j] }
  }`).kernel()
  expect(() => own.reorder('.j', '.i')).toThrow('schedule/unknown-loop')
})
