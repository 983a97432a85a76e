/**
 * WebGPU in Node: Dawn (the optional npm package `webgpu`) on the machine's GPU, or on SwiftShader without a GPU. The
 * environment variable `SPT_WEBGPU` selects `auto` (default), `hardware` (never the software driver) or `swiftshader` (never
 * the GPU).
 */
import { failWith, SptError } from '../../ast/diagnostics/diagnostic.ts'
import { importOptional, type Missing } from '../../ast/diagnostics/optional-packages.ts'
import type { Device, DeviceReport } from '../device.ts'
import { adapterLimits, adapterName, capabilities } from './limits.ts'
import { createWebGpuDevice } from './open.ts'
import { type NodeWebGpuOptions, WEBGPU_CHOICES, type WebGpuChoice } from './options.ts'
import { findVulkan, withSwiftShader } from './swiftshader.ts'

/** An adapter and the `GPU` that returned it. An adapter provides one device. */
export interface FoundAdapter {
  readonly gpu: GPU
  readonly adapter: GPUAdapter
  /** Description of the driver behind the adapter. */
  readonly driver: string
}

/**
 * Dawn instances by driver and flags. Dawn crashes or hangs if an instance is garbage-collected, so instances are kept. One
 * instance serves all devices.
 */
const instances = new Map<string, GPU>()

/** Opens a device on the adapter selected by `adapter`. @throws SptError `device/absent` with the reason */
export async function createNodeWebGpu(options: NodeWebGpuOptions = {}): Promise<Device> {
  const search = await findAdapter(options)
  if ('reason' in search)
    failWith('device/absent', `no WebGPU device: ${search.reason}`, { hint: search.hint })
  return createWebGpuDevice(search.gpu, options, search.adapter)
}

/** Reports the availability of WebGPU: the device, or the reason and a remedy. */
export async function reportWebGpu(options: NodeWebGpuOptions = {}): Promise<DeviceReport> {
  const facts: Record<string, string> = {}
  const report = (fields: Omit<DeviceReport, 'kind' | 'facts'>): DeviceReport => ({
    kind: 'webgpu',
    ...fields,
    facts,
  })
  try {
    const search = await findAdapter(options)
    facts.selection = choiceOf(options)
    if ('reason' in search) return report({ available: false, reason: search.reason, hint: search.hint })
    const { adapter } = search
    const limits = adapterLimits(adapter)
    facts.driver = search.driver
    facts.software = adapter.info.isFallbackAdapter ? 'yes' : 'no'
    facts.features = ['shader-f16', 'subgroups', 'timestamp-query']
      .filter((f) => adapter.features.has(f))
      .join(', ')
    const properties = [...capabilities(adapter.features, adapter.info, 1)].filter((f) => f.includes('('))
    if (properties.length > 0) facts.properties = properties.join(', ')
    facts['largest buffer'] = `${Math.round(limits.maxStorageBufferBindingSize! / 2 ** 20)} MiB`
    facts['buffers per launch'] = `${limits.maxStorageBuffersPerShaderStage}`
    facts['threads per block'] = `${limits.maxComputeInvocationsPerWorkgroup}`
    facts['shared memory'] = `${limits.maxComputeWorkgroupStorageSize! / 2 ** 10} KiB`
    return report({ available: true, name: adapterName(adapter.info) })
  } catch (e) {
    if (!(e instanceof SptError)) throw e
    const [first] = e.diagnostics
    return report({
      available: false,
      reason: first!.message,
      ...(first!.hint !== undefined && { hint: first!.hint }),
    })
  }
}

function choiceOf(options: NodeWebGpuOptions): WebGpuChoice {
  const choice = options.adapter ?? process.env.SPT_WEBGPU ?? 'auto'
  if ((WEBGPU_CHOICES as readonly string[]).includes(choice)) return choice as WebGpuChoice
  failWith('device/unknown-choice', `there is no WebGPU driver ${JSON.stringify(choice)} (SPT_WEBGPU)`, {
    expected: WEBGPU_CHOICES.join(', '),
    hint: 'unset SPT_WEBGPU: the default is the GPU if there is one, otherwise the software driver',
    lookup: { name: choice, candidates: WEBGPU_CHOICES },
  })
}

/** Reason why an earlier search found no GPU; the search is not repeated. */
let hardwareAbsence: string | undefined
/** Searches are serialised, because a search for SwiftShader temporarily changes the environment. */
let lastSearch: Promise<unknown> = Promise.resolve()

/** The adapter that `adapter` allows, or the reason for its absence. */
export async function findAdapter(options: NodeWebGpuOptions = {}): Promise<FoundAdapter | Missing> {
  const choice = choiceOf(options)
  const search = lastSearch.then(() => searchAdapter(options, choice))
  lastSearch = search.catch(() => undefined)
  return search
}

async function searchAdapter(
  options: NodeWebGpuOptions,
  choice: WebGpuChoice,
): Promise<FoundAdapter | Missing> {
  const dawn = await importOptional('WebGPU in Node needs', 'webgpu', () => import('webgpu'))
  if ('reason' in dawn) return dawn
  const request = async (driver: string): Promise<FoundAdapter | undefined> => {
    const dawnFlags = flags(options)
    const key = [driver, ...dawnFlags].join('\n')
    const gpu = instances.get(key) ?? dawn.create(dawnFlags)
    instances.set(key, gpu)
    const adapter = await gpu.requestAdapter({
      powerPreference: options.powerPreference ?? 'high-performance',
      forceFallbackAdapter: options.forceFallbackAdapter ?? false,
    })
    return adapter ? { gpu, adapter, driver } : undefined
  }
  if (choice !== 'swiftshader') {
    if (hardwareAbsence === undefined) {
      const vulkan = await findVulkan()
      const candidate = 'reason' in vulkan ? undefined : await request(vulkan.driver)
      if (candidate && !(choice === 'hardware' && candidate.adapter.info.isFallbackAdapter)) return candidate
      hardwareAbsence = 'reason' in vulkan ? vulkan.reason : 'Dawn finds no adapter that it can use'
    }
    if (choice === 'hardware')
      return {
        reason: hardwareAbsence,
        hint: 'install the GPU driver with its Vulkan part, or use SPT_WEBGPU=auto',
      }
  }
  const software = await withSwiftShader(request)
  if (software === undefined)
    return { reason: 'SwiftShader is installed and Dawn refuses it', hint: 'use the cpu device' }
  if (!('reason' in software) || choice === 'swiftshader') return software
  return { reason: `${hardwareAbsence}; ${software.reason}`, hint: software.hint }
}

function flags(options: NodeWebGpuOptions): string[] {
  // Dawn enables NVIDIA's f16 only with this toggle; other drivers ignore it.
  const toggles = ['vulkan_enable_f16_on_nvidia', ...(options.toggles ?? [])]
  if (options.robustness === false) toggles.push('disable_robustness')
  // By default, timestamps are quantised to 65 µs, longer than many kernels.
  return [`enable-dawn-features=${toggles.join()}`, 'disable-dawn-features=timestamp_quantization']
}
