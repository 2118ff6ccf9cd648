#!/bin/sh
# Runs a test with the Python that has what it needs: KUMO_KUBERNETES_PYTHON, else python3.
exec "${KUMO_KUBERNETES_PYTHON:-python3}" "$@"
