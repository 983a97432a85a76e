/** Whether WGSL texts are valid, by a device that offers every feature and runs nothing (Dawn's null backend). */
import { create } from 'webgpu'

const FEATURES = ['shader-f16', 'subgroups', 'chromium-experimental-subgroup-matrix'] as GPUFeatureName[]

/** What `create` returns must stay reachable. */
let gpu: GPU | undefined
let device: Promise<GPUDevice> | undefined

/** A `GPU` whose devices check all that they are asked to do, and do nothing. */
export function nullGpu(): GPU {
  gpu ??= create(['backend=null', 'enable-dawn-features=allow_unsafe_apis'])
  return gpu
}

async function open(): Promise<GPUDevice> {
  const adapter = await nullGpu().requestAdapter()
  if (!adapter) throw new Error('Dawn has no null backend')
  return adapter.requestDevice({ requiredFeatures: FEATURES.filter((f) => adapter.features.has(f)) })
}

/** Errors of a text, each with its line. */
export async function wgslErrors(text: string): Promise<readonly string[]> {
  device ??= open()
  const d = await device
  d.pushErrorScope('validation')
  const { messages } = await d.createShaderModule({ code: text }).getCompilationInfo()
  await d.popErrorScope()
  return messages
    .filter((m) => m.type === 'error')
    .map((m) => `${m.message}: ${text.split('\n')[m.lineNum - 1]}`)
}
