"""Checkups and receipts ↔ their messages."""

from __future__ import annotations

from memoryd.domain.names import Scope
from memoryd.domain.purges import PurgedFile, PurgeReceipt
from memoryd.domain.repairs import Checkup, Defect, Finding, Treatment
from memoryd.v1 import maintenance_pb2
from memoryd.wire.enums import number, required

_DEFECT = maintenance_pb2.Defect.DESCRIPTOR
_TREATMENT = maintenance_pb2.Treatment.DESCRIPTOR


def checkup_to(checkup: Checkup) -> maintenance_pb2.CheckResponse:
    """Write a comparison down."""
    return maintenance_pb2.CheckResponse(
        files=checkup.files,
        chunks=checkup.chunks,
        pending=checkup.pending,
        stray=checkup.stray,
        findings=[
            maintenance_pb2.Finding(
                path=finding.path,
                defect=number(finding.defect, _DEFECT),
                vectors=finding.vectors,
                texts=finding.texts,
                treatment=number(finding.treatment, _TREATMENT),
                detail=finding.detail,
            )
            for finding in checkup.findings
        ],
    )


def checkup_from(response: maintenance_pb2.CheckResponse, scope: Scope) -> Checkup:
    """Read the comparison of the workspace that was asked for."""
    return Checkup(
        scope=scope,
        files=response.files,
        chunks=response.chunks,
        pending=response.pending,
        stray=response.stray,
        findings=tuple(
            Finding(
                finding.path,
                required("defect", finding.defect, _DEFECT, Defect),
                finding.vectors,
                finding.texts,
                required("treatment", finding.treatment, _TREATMENT, Treatment),
                finding.detail,
            )
            for finding in response.findings
        ),
    )


def receipt_to(receipt: PurgeReceipt) -> maintenance_pb2.PurgeResponse:
    """Write a receipt down; the tenant is the request's."""
    return maintenance_pb2.PurgeResponse(
        files=[
            maintenance_pb2.PurgedFile(
                workspace=file.scope.workspace, path=file.path, vectors=file.vectors, texts=file.texts
            )
            for file in receipt.files
        ],
        verified=receipt.verified,
        again_in=receipt.again_in,
        waits_for=receipt.waits_for,
        keys=receipt.keys,
    )


def receipt_from(response: maintenance_pb2.PurgeResponse, tenant: str) -> PurgeReceipt:
    """Read the receipt of a purge of that tenant."""
    return PurgeReceipt(
        files=tuple(
            PurgedFile(Scope(tenant, file.workspace), file.path, file.vectors, file.texts) for file in response.files
        ),
        verified=response.verified,
        again_in=response.again_in,
        waits_for=response.waits_for,
        keys=response.keys,
    )
