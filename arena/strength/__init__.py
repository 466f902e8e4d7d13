"""What results say for sure: intervals, and whether an order is settled.

Pure: outcomes in, numbers out. Nothing here plays a match or changes a result.
"""
