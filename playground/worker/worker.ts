/** The worker: answers one request after the other. The page ends it to stop a run that takes too long. */
import type { DeviceInfo, Reply, Request, Results } from '../protocol.ts'
import { check, checkSteps } from './check.ts'
import { codeOf, deviceOf, loopsOf, pictureOf } from './compiler.ts'
import { errorText } from './diagnostics.ts'
import { matrixOf } from './matrices.ts'
import { runOf } from './run.ts'
import { scope } from './scope.ts'

async function answer(request: Request): Promise<Results[keyof Results]> {
  switch (request.kind) {
    case 'check':
      return check(request.text)
    case 'steps':
      return checkSteps(request.text)
    case 'matrix': {
      const { shape, coords, dtype } = await matrixOf(request.matrix)
      return { rows: shape[0]!, columns: shape[1]!, nonzeros: coords[0]!.length, dtype }
    }
    case 'picture':
      return pictureOf(request.problem, request.variant)
    case 'loops':
      return loopsOf(request.problem, request.variant, request.device)
    case 'code':
      return codeOf(request.problem, request.variant, request.target)
    case 'run':
      return runOf(request.problem, request.variant, request.device)
    case 'devices':
      return deviceInfo()
  }
}

/** Whether there is a WebGPU device, and whether it computes on a GPU. */
async function deviceInfo(): Promise<DeviceInfo> {
  const adapter = await scope.navigator.gpu?.requestAdapter().catch(() => null)
  if (!adapter) return { webgpu: null, software: false }
  const { isFallbackAdapter, vendor, architecture, description } = adapter.info
  const isSoftware =
    isFallbackAdapter || /swiftshader|llvmpipe|software/i.test(`${architecture} ${description}`)
  if (!isSoftware) void deviceOf('webgpu').catch(() => {})
  return { webgpu: description || `${vendor} ${architecture}`.trim() || 'WebGPU', software: isSoftware }
}

/** Requests are answered in order: a device and the program's caches have one user at a time. */
let queue: Promise<void> = Promise.resolve()

scope.addEventListener<Request & { readonly id: number }>('message', ({ data }) => {
  queue = queue.then(async () => {
    const { id } = data
    let reply: Reply
    try {
      reply = { id, result: await answer(data) }
    } catch (e) {
      reply = { id, error: errorText(e) }
    }
    scope.postMessage(reply)
  })
})
