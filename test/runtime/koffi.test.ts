/** Whichever device calls C libraries first: the stacks of later calls are large enough for NVRTC. */
import { execFileSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { hasDeepStacks, type Koffi, loadKoffi } from '../../src/runtime/koffi.ts'
import { createNodeWebGpu } from '../../src/runtime/webgpu/node.ts'

test('after WebGPU has made calls', async () => {
  const device = await createNodeWebGpu()
  await device.dispose()
  expect(hasDeepStacks((await loadKoffi('this test needs')) as Koffi)).toBe(true)
})

test('another package may have made calls before', () => {
  const text = `
    import koffi from 'koffi'
    koffi.load(null).func('int getpid()')()
    try { koffi.config({ ...koffi.config(), async_stack_size: 2 ** 24 }) } catch {}
    console.log(koffi.config().async_stack_size < 2 ** 24)`
  expect(
    execFileSync(process.execPath, ['--input-type=module', '-e', text], { encoding: 'utf8' }).trim(),
  ).toBe('true')
})
