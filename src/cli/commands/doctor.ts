import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { totalmem } from 'node:os'
import { join } from 'node:path'
import { processorName } from '../../io/package/calibrations.ts'
import { version } from '../../io/package/package.ts'
import type { DeviceReport } from '../../runtime/device.ts'
import { calibrationOf, installStoredModels } from '../../search/calibrate/stored.ts'
import type { Call, CommandSpec } from '../arguments/command.ts'
import { EXIT } from '../output/failure.ts'
import { linesText } from '../output/figures.ts'

export const doctor: CommandSpec = {
  name: 'doctor',
  args: '',
  count: [0, 0],
  summary: 'List the available devices, and how to enable the others',
  options: [{ flags: '--json', about: 'One JSON object: { version, node, platform, devices, packages }' }],
  notes: [
    'Environment variables: SPT_WEBGPU=hardware or swiftshader selects the WebGPU driver. SPT_LIBCUDA and SPT_NVRTC are\npaths of the CUDA libraries.',
    'SPT_CACHE_DIR is the cache folder of compiled CUDA kernels, parsed programs and results of spt check (off: no cache).\nSPT_CUDA_SYNC=1 reports the kernel of a fault.',
    'SPT_CUDA_OVERLAP=0 serialises launches.',
  ],
  examples: ['spt doctor', 'spt doctor --json'],
  async run(call) {
    installStoredModels()
    const [{ reportWebGpu }, { reportCuda }] = await Promise.all([
      import('../../runtime/webgpu/node.ts'),
      import('../../runtime/cuda/index.ts'),
    ])
    const reports = [reportCpu(), await reportWebGpu(), await reportCuda()].map((r) =>
      withCalibration(r, call.io.env),
    )
    const host = {
      version: version(),
      node: process.version,
      platform: `${process.platform}-${process.arch}`,
    }
    const packages = PACKAGES.map(packageReport)
    if (call.flag('json')) call.io.out(`${JSON.stringify({ ...host, devices: reports, packages })}\n`)
    else {
      call.io.out(`sparsetile ${host.version}, Node ${host.node}, ${host.platform}\n\n`)
      call.io.out([...reports.map(deviceText), packagesText(packages)].join('\n'))
    }
    return EXIT.ok
  },
}

/** Optional packages of tools, by their use; those of devices are in the reports of the devices. */
const PACKAGES = [
  ['tuning records', 'libsql'],
  ['PNG figures', '@resvg/resvg-wasm dejavu-fonts-ttf'],
] as const

function packageReport([use, names]: (typeof PACKAGES)[number]) {
  const folders = createRequire(import.meta.url).resolve.paths('x') ?? []
  const available = names.split(' ').every((name) => folders.some((f) => existsSync(join(f, name))))
  return { use, available, ...(available ? {} : { hint: `npm i ${names}` }) }
}

const packagesText = (packages: readonly ReturnType<typeof packageReport>[]): string =>
  `packages\n${linesText(Object.fromEntries(packages.map((p) => [p.use, p.hint ?? 'yes'])), { indent: '        ' })}`

function reportCpu(): DeviceReport {
  const facts = {
    processor: processorName() || 'unknown',
    memory: `${(totalmem() / 2 ** 30).toFixed(1)} GiB`,
  }
  return { kind: 'cpu', available: true, name: 'JavaScript', facts }
}

/** Adds to the report the state of the device's calibrated cost model. */
function withCalibration(report: DeviceReport, env: Call['io']['env']): DeviceReport {
  if (!report.available) return report
  const { kind, name = '' } = report
  const calibration = calibrationOf(kind, { name }, env)
  const description =
    calibration === 'none'
      ? 'no (spt calibrate)'
      : calibration === 'unusable'
        ? 'ignored: the file is damaged or of another version (spt calibrate replaces it)'
        : `yes, mean error ${((Math.exp(calibration.error) - 1) * 100).toFixed(0)} %`
  return { ...report, facts: { ...report.facts, calibrated: description } }
}

const deviceText = (r: DeviceReport): string =>
  `${r.kind.padEnd(8)}${r.available ? `yes  ${r.name ?? ''}` : 'no'}\n${linesText({ reason: r.reason, hint: r.hint, ...r.facts }, { indent: '        ' })}`
