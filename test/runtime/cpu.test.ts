import { expect, test } from 'vitest'
import { createCpuDevice } from '../../src/runtime/cpu/device.ts'
import { codeOf, deviceSuite } from '../support/device-suite.ts'
import { JS_TEXTS } from '../support/js-texts.ts'
import { workSuite } from './work-suite.ts'

deviceSuite('cpu', async () => createCpuDevice(), JS_TEXTS)
workSuite('cpu', async () => createCpuDevice(), JS_TEXTS)

test('a page with a content security policy against eval gets a diagnostic', async () => {
  const original = globalThis.Function
  globalThis.Function = function Forbidden() {
    throw new EvalError('unsafe-eval is not allowed')
  } as unknown as FunctionConstructor
  try {
    expect(await codeOf(() => createCpuDevice().compile(JS_TEXTS.scale.module))).toBe('device/compile')
    await createCpuDevice()
      .compile(JS_TEXTS.scale.module)
      .catch((e: { diagnostics: { hint: string }[] }) => {
        expect(e.diagnostics[0]!.hint).toContain('unsafe-eval')
      })
  } finally {
    globalThis.Function = original
  }
})

test('memory may be longer than an array of bytes', async () => {
  const device = createCpuDevice()
  const b = device.alloc(2 ** 32 + 16, 'long')
  await device.upload(b, Int32Array.of(7, 8), 2 ** 32 + 4)
  const { memory } = b as unknown as { memory: ArrayBuffer }
  expect([...new Int32Array(memory, 2 ** 32, 4)]).toEqual([0, 7, 8, 0])
  b.free()
  const refused = () => device.alloc(2 ** 33 + 4, 'longer')
  expect(await codeOf(refused)).toBe('device/buffer-too-large')
  await expect(async () => refused()).rejects.toMatchObject({
    diagnostics: [{ hint: 'use smaller sizes, or partition the tensor' }],
  })
})
