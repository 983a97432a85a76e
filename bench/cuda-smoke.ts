/**
 * The CUDA device on a real GPU: every call, every error, and the figures that plans are made with.
 *
 *   node dist/bench/cuda-smoke.js               all checks; exit code 1 where one fails
 *   node dist/bench/cuda-smoke.js --only overlap   launches that overlap, and what that is worth
 *   node dist/bench/cuda-smoke.js --emit DIR    writes the kernels' texts, to be compiled without a GPU
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createCudaDevice, reportCuda } from '../src/runtime/cuda/index.ts'
import { compiling } from './cuda-smoke/compiling.ts'
import { fault, faults } from './cuda-smoke/faults.ts'
import { figures } from './cuda-smoke/figures.ts'
import { check, counts, refused } from './cuda-smoke/harness.ts'
import { KERNELS } from './cuda-smoke/kernels.ts'
import { overlap } from './cuda-smoke/overlap.ts'
import { refusals } from './cuda-smoke/refusals.ts'
import { results } from './cuda-smoke/results.ts'
import { queueing, work } from './cuda-smoke/work.ts'

async function main(): Promise<number> {
  const [flag, value] = process.argv.slice(2)
  if (flag === '--fault') {
    await fault(value!)
    return 0
  }
  if (flag === '--emit') {
    mkdirSync(value!, { recursive: true })
    for (const text of Object.values(KERNELS)) writeFileSync(join(value!, `${text.name}.cu`), text.text)
    return 0
  }
  const report = await reportCuda()
  console.log(JSON.stringify(report, null, 2))
  if (!report.available) {
    await check('an absent device is an error with its reason', () =>
      refused('device/absent', () => createCudaDevice()),
    )
    console.log(`${counts.passed} passed, ${counts.failed} failed; no CUDA device here`)
    return counts.failed === 0 ? 0 : 1
  }
  const cacheDir = mkdtempSync(join(tmpdir(), 'sparsetile-smoke-'))
  process.env.SPT_CACHE_DIR = cacheDir
  try {
    const device = await createCudaDevice({ cacheDir: false })
    if (flag === '--only') {
      await overlap(device)
      await device.dispose()
      return counts.failed === 0 ? 0 : 1
    }
    console.log('resources', JSON.stringify((await device.compile(KERNELS.scale)).resources))
    console.log('features', [...device.features].join(' '), JSON.stringify(device.limits))
    await results(device)
    await work(device)
    await overlap(device)
    await refusals(device)
    await compiling(cacheDir)
    await faults(fileURLToPath(import.meta.url))
    await figures(device)
    await queueing(device)
    await check('dispose', async () => void (await device.dispose()))
  } finally {
    rmSync(cacheDir, { recursive: true, force: true })
  }
  console.log(`${counts.passed} passed, ${counts.failed} failed`)
  return counts.failed === 0 ? 0 : 1
}

process.exitCode = await main()
