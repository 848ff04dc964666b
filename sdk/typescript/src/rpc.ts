import type { ProblemField } from "./api.js";
import { ApiError, type Refusal } from "./errors.js";

/** The error of a JSON-RPC response. */
export interface RpcErrorBody {
  code: number;
  message: string;
  data?: unknown;
}

interface Detail {
  "@type"?: string;
  metadata?: { code?: string; scope?: string };
  requestId?: string;
  fieldViolations?: { field: string; description: string }[];
}

/**
 * Returns the refusal in a JSON-RPC error. Its data is an object with a code, a list of fields, or the
 * details of A2A 1.0.
 */
export function refusalOfRpc(error: RpcErrorBody, response: Refusal): ApiError {
  const refusal: Refusal = { ...response, rpcCode: error.code, detail: error.message };
  if (Array.isArray(error.data)) {
    readDetails(error.data as Detail[], refusal);
  } else if (typeof error.data === "object" && error.data !== null) {
    const own = error.data as { code?: string; scope?: string; request_id?: string };
    refusal.code = own.code;
    refusal.scope = own.scope;
    refusal.requestId = own.request_id ?? response.requestId;
  }
  return new ApiError(refusal);
}

function readDetails(details: readonly Detail[], refusal: Refusal): void {
  const fields: ProblemField[] = [];
  for (const detail of details) {
    if (detail["@type"] === undefined) fields.push(detail as ProblemField);
    if (detail.metadata?.code !== undefined) {
      refusal.code = detail.metadata.code;
      refusal.scope = detail.metadata.scope;
    }
    refusal.requestId = detail.requestId ?? refusal.requestId;
    for (const { field, description } of detail.fieldViolations ?? []) {
      fields.push({ in: "body", pointer: `/${field.replaceAll(".", "/")}`, detail: description });
    }
  }
  refusal.fields = fields;
}
