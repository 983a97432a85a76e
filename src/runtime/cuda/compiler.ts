/** Compiles a printed module to an image for the driver: cache, headers, NVRTC. */
import { failAs } from '../../ast/diagnostics/diagnostic.ts'
import { cacheKey, type DiskCache } from '../../cache/disk-cache.ts'
import type { ModuleText } from '../device.ts'
import { absentError } from './errors.ts'
import { includeCandidates, includedHeaders, type Machine, resolveHeaders } from './libraries.ts'
import { BASE_OPTIONS, type CompileTarget, chooseTarget, type Nvrtc } from './nvrtc.ts'

/** Version of the cache; raised when cached results for unchanged source become invalid. */
const CACHE_FORMAT = '1'

export interface Image {
  readonly bytes: Uint8Array
  readonly cached: boolean
}

export interface KernelCompiler {
  readonly target: CompileTarget
  /** Rejects with `device/compile` or `device/header-missing`. `skipCache` compiles again and rewrites the cached image. */
  image(module: ModuleText, skipCache?: boolean): Promise<Image>
}

export function openCompiler(
  nvrtc: Nvrtc,
  chip: { readonly name: string; readonly major: number; readonly minor: number },
  cache: DiskCache,
  machine: Machine,
  include: readonly string[] = [],
): KernelCompiler {
  const target = chooseTarget(chip, nvrtc)
  if (!target) {
    throw absentError({
      message: `NVRTC ${nvrtc.major}.${nvrtc.minor} no longer compiles for ${chip.name} (compute capability ${chip.major}.${chip.minor})`,
      expected: `one of ${nvrtc.supported.join(', ')} or newer`,
      hint: 'install an older CUDA toolkit and name its NVRTC with SPT_NVRTC',
    })
  }
  const folders = [...include, ...includeCandidates(machine, nvrtc.path)]

  function optionsFor(module: ModuleText): string[] {
    const headers = includedHeaders(module.text)
    const resolved = resolveHeaders(machine, headers, folders)
    if (resolved.missing.length > 0) {
      failAs('device/header-missing', {
        message: `CUDA module '${module.name}' includes ${resolved.missing.join(', ')}, which is not installed`,
        expected: "CUDA's headers next to NVRTC, in CUDA_HOME/include or in the NVIDIA wheels",
        hint: 'install the CUDA toolkit or the Python wheel nvidia-cuda-runtime, or set CUDA_HOME',
        notes: [`looked in:\n${folders.map((f) => `  ${f}`).join('\n')}`],
      })
    }
    return [...BASE_OPTIONS, ...resolved.include.map((folder) => `-I${folder}`)]
  }

  return {
    target,
    async image(module, skipCache = false) {
      const options = optionsFor(module)
      const key = cacheKey([
        CACHE_FORMAT,
        module.name,
        module.text,
        target.arch,
        target.output,
        `${nvrtc.major}.${nvrtc.minor}`,
        ...options,
      ])
      const cached = skipCache ? undefined : await cache.load(key)
      if (cached) return { bytes: cached, cached: true }
      const bytes = await nvrtc.compile(module, target, options)
      await cache.store(key, bytes)
      return { bytes, cached: false }
    },
  }
}
