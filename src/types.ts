/** Types of results and arguments that a program seldom names: the namespace `types` of the main entry. */
export type {
  PermutableDimension,
  PermutableDimensions,
} from './analysis/permutations/permutable-dimensions.ts'
export type { ScheduleCandidate } from './api/auto-schedule/schedule-candidates.ts'
export type { PredictedTime } from './api/dispatch/dispatch-conditions.ts'
export type { EstimatedTime, FillRatio } from './api/dispatch/measurements.ts'
export type { ConvertedPart } from './api/inputs/converted-tensor.ts'
export type { Inspection } from './api/kernels/inspection.ts'
export type { KernelOrigin } from './api/kernels/kernel.ts'
export type * from './api/kernels/micro-tiles.ts'
export type { Nest, NestLoop } from './api/kernels/nests.ts'
export type { Space, UnboundSpace } from './api/kernels/space.ts'
export type {
  IterationAttributes,
  IterationMask,
  MaskedValue,
  SparsityAttributes,
  TensorAttributes,
  TensorMask,
} from './api/kernels/stepped-kernel.ts'
export type { TextOrUrl } from './api/programs/program.ts'
export type { Source } from './ast/diagnostics/diagnostic.ts'
export type { RenderOptions } from './ast/diagnostics/render.ts'
export type { ReadText } from './ast/imports/resolve-imports.ts'
export type { RuleOrigin } from './ast/nodes/nodes.ts'
export type { AbortSignalLike, Progress, WorkOptions } from './ast/work.ts'
export type { Provenance } from './formats/proof/provenance.ts'
export type { AnyFormat, Instance } from './ir/formats/format.ts'
export type { Instr, Memory } from './ir/instructions/instr.ts'
export type { PartReport, TensorReport } from './pictures/format-figures.ts'
export type { PictureOptions } from './pictures/picture/index.ts'
export type { PlanFamily } from './plan/schema.ts'
export type { RefOptions, RefOutputs } from './reference/index.ts'
export type { PartFormat } from './run/bind/index.ts'
export type { ClearExplanation, LaunchExplanation } from './run/explain/index.ts'
export type { Coverage } from './run/verify/compare-outputs.ts'
export type {
  Command,
  DeviceBuffer,
  DeviceEvent,
  GpuBufferLike,
  GpuDeviceLike,
  GpuEncoderLike,
  Graph,
  NativeMemory,
  NativeRange,
  Stream,
} from './runtime/device.ts'
export type { SharedGpuOptions } from './runtime/webgpu/options.ts'
export type { FormatInput, UsedFormat } from './schedule/coordinates/as/format-inputs.ts'
export type { LoopHandle, LoopRef } from './schedule/names/kernel-names.ts'
export type { Step } from './schedule/steps/resolve.ts'
