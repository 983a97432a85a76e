/** Compiling cold, from the cache, from a damaged cache, and at once. */
import { readdirSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { createCudaDevice } from '../../src/runtime/cuda/index.ts'
import { check, expect } from './harness.ts'
import { KERNELS } from './kernels.ts'

export async function compiling(cacheDir: string): Promise<void> {
  const files = (): string[] => readdirSync(cacheDir).map((f) => join(cacheDir, f))
  const timed = async (): Promise<[number, boolean[]]> => {
    const device = await createCudaDevice({ cacheDir })
    const start = performance.now()
    const cached: boolean[] = []
    for (const text of Object.values(KERNELS)) cached.push((await device.compile(text)).cached)
    const ms = (performance.now() - start) / cached.length
    await device.dispose()
    return [ms, cached]
  }
  await check('compile: cold, cached, after every cached file was cut', async () => {
    const [cold, first] = await timed()
    const [warm, second] = await timed()
    for (const file of files()) truncateSync(file, 100)
    const [, third] = await timed()
    const [, fourth] = await timed()
    expect(!first.includes(true), 'a new cache had entries')
    expect(!second.includes(false), 'not all came from the cache')
    expect(!third.includes(true), 'a cut file was used')
    expect(!fourth.includes(false), 'cut files were not rewritten')
    expect(
      files().every((f) => f.endsWith('.kernel')),
      'temporary files were left',
    )
    return `${cold.toFixed(1)} ms cold, ${warm.toFixed(2)} ms cached, mean of ${first.length} modules`
  })
  await check('compile: eight modules at once', async () => {
    const device = await createCudaDevice({ cacheDir: false })
    const texts = Array.from({ length: 8 }, (_, k) => ({
      ...KERNELS.scale,
      text: `${KERNELS.scale.text}// ${k}\n`,
    }))
    const start = performance.now()
    await Promise.all(texts.map((text) => device.compile(text)))
    const ms = performance.now() - start
    await device.dispose()
    return `${ms.toFixed(0)} ms together`
  })
}
